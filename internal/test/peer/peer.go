package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// ErrGone is the outcome of calls that were open when the process ended.
var ErrGone = errors.New("the Redisson peer has ended")

const (
	// startTimeout bounds the time until the process is ready.
	startTimeout = 30 * time.Second
	// stopTimeout bounds the end of the process after its stdin was closed.
	stopTimeout = 10 * time.Second
)

// Peer is a running Java process with Redisson. Its methods are safe for
// concurrent use.
type Peer struct {
	// Version is the release that runs, as its jar says.
	Version string

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *tail // the end of what it wrote to stderr
	gone   chan struct{}

	write sync.Mutex // one command line at a time

	mu    sync.Mutex // guards what follows; never held across I/O
	calls map[int64]*Call
	last  int64
	ended bool
}

// Start starts the process and returns when it is ready for commands. Close
// ends it; it also ends when this process does, whose pipe it reads.
func Start(program Program) (*Peer, error) {
	p := &Peer{cmd: program.command(), stderr: &tail{}, gone: make(chan struct{}), calls: map[int64]*Call{}}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.cmd.Stderr = stdin, p.stderr
	ready := p.expect(0)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the Redisson peer: %w", err)
	}
	go p.read(stdout)
	if err := p.handshake(ready, program.Version); err != nil {
		p.Close()
		return nil, fmt.Errorf("%w\n%s", err, p.stderr)
	}
	return p, nil
}

// handshake waits for the first line.
func (p *Peer) handshake(ready *Call, version string) error {
	reply, err := ready.Wait(startTimeout)
	if err != nil {
		return err
	}
	var hello struct{ Version string }
	if err := reply.Into(&hello); err != nil {
		return err
	}
	if hello.Version != version {
		return fmt.Errorf("wanted Redisson %s, the class path has %s", version, hello.Version)
	}
	p.Version = hello.Version
	return nil
}

// read takes replies to their calls until the process has ended.
func (p *Peer) read(stdout io.Reader) {
	defer close(p.gone)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		p.deliver(line)
	}
	_ = p.cmd.Wait() // the pending calls report how it ended
	p.fail()
}

func (p *Peer) deliver(line []byte) {
	var reply Reply
	if err := json.Unmarshal(line, &reply); err != nil {
		_, _ = p.stderr.Write(line) // no reply, so an error message of the JVM
		return
	}
	p.mu.Lock()
	call := p.calls[reply.ID]
	delete(p.calls, reply.ID)
	p.mu.Unlock()
	if call != nil {
		call.reply <- reply
	}
}

// fail ends all open calls and those to come.
func (p *Peer) fail() {
	p.mu.Lock()
	open := p.calls
	p.calls, p.ended = nil, true
	p.mu.Unlock()
	for _, call := range open {
		close(call.reply)
	}
}

func (p *Peer) expect(id int64) *Call {
	call := &Call{reply: make(chan Reply, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		close(call.reply)
		return call
	}
	p.calls[id] = call
	return call
}

// Go begins a command and does not wait for its reply. The peer does commands
// of one thread in the order in which they were begun.
func (p *Peer) Go(command Command) *Call {
	p.write.Lock()
	defer p.write.Unlock()
	p.mu.Lock()
	p.last++
	id := p.last
	p.mu.Unlock()
	call := p.expect(id)
	line, err := command.line(id)
	if err != nil {
		panic(fmt.Sprintf("peer: command %v: %v", command, err))
	}
	// A process that is gone answers through its calls.
	_, _ = p.stdin.Write(line)
	return call
}

// Halt ends the process at once, as a crash would (Runtime.halt), and returns
// when it is gone.
func (p *Peer) Halt() {
	p.Go(Command{"op": "halt"})
	p.await()
}

// Close ends the process and returns when it is gone. Locks that its clients
// hold are left to their leases. It may be called again.
func (p *Peer) Close() {
	_ = p.stdin.Close() // closed before, at worst
	p.await()
}

// await waits for the end, and brings it about when it takes too long.
func (p *Peer) await() {
	select {
	case <-p.gone:
		return
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill() // ended in this moment, at worst
	}
	<-p.gone
}

// Stderr returns the end of what the process wrote to stderr.
func (p *Peer) Stderr() string { return p.stderr.String() }
