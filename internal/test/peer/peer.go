// Package peer controls a Java process that runs Redisson. The Java program is built by scripts/compat.sh. If it is
// missing, a test is skipped, or fails if CI=true or REDLATCH_COMPAT=1 is set.
package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// ErrGone is returned for calls that have not been answered when the process exits.
var ErrGone = errors.New("the Redisson peer has ended")

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// Peer is a running Java process with Redisson. Its methods are safe for concurrent use.
type Peer struct {
	Version string

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *tail
	gone   chan struct{}

	write sync.Mutex // one command line at a time

	mu    sync.Mutex // guards the fields below; not held during I/O
	calls map[int64]*Call
	last  int64
	ended bool
}

// Start starts a process that runs until the test ends.
func Start(tb testing.TB, program Program) *Peer {
	tb.Helper()
	p, err := start(program)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Close()
		if tb.Failed() {
			tb.Logf("the Redisson peer's complaints:\n%s", p.stderr)
		}
	})
	return p
}

func start(program Program) (*Peer, error) {
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
	_ = p.cmd.Wait()
	p.fail()
}

func (p *Peer) deliver(line []byte) {
	var reply Reply
	if err := json.Unmarshal(line, &reply); err != nil {
		_, _ = p.stderr.Write(line)
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

// Go starts a command. Commands for the same thread run in order.
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
	_, _ = p.stdin.Write(line)
	return call
}

// Halt crashes the process with Runtime.halt.
func (p *Peer) Halt() {
	p.Go(Command{"op": "halt"})
	p.await()
}

// Close ends the process without releasing its locks, which expire. It is idempotent.
func (p *Peer) Close() {
	_ = p.stdin.Close()
	p.await()
}

func (p *Peer) await() {
	select {
	case <-p.gone:
		return
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
	}
	<-p.gone
}

// Stderr returns the last part of the process's standard error.
func (p *Peer) Stderr() string { return p.stderr.String() }

// ErrMissing is returned if the Java program or one of its dependencies is missing.
var ErrMissing = errors.New("the Redisson peer is not ready")

const mainClass = "dev.redlatch.peer.Main"

// Program is a Java program that can be started.
type Program struct {
	Version         string
	java, classPath string
}

// Look returns the program for a release of Redisson. The argument root is the module's folder.
func Look(tb testing.TB, root, release string) (Program, error) {
	tb.Helper()
	program, err := find(root, release)
	if err != nil && (os.Getenv("CI") == "true" || os.Getenv("REDLATCH_COMPAT") == "1") {
		tb.Fatal(err)
	}
	return program, err
}

// Find is like Look, but skips the test if the program is missing. The argument loss says what goes untested then.
func Find(tb testing.TB, root, release, loss string) Program {
	tb.Helper()
	program, err := Look(tb, root, release)
	if err != nil {
		tb.Skipf("%s: %v", loss, err)
	}
	return program
}

func find(root, version string) (Program, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return Program{}, fmt.Errorf("%w: no java here; install a JDK, 17 or later, and Maven", ErrMissing)
	}
	target, err := filepath.Abs(filepath.Join(root, "internal", "test", "peer", "java", "target"))
	if err != nil {
		return Program{}, err
	}
	classes := filepath.Join(target, "classes")
	if _, err := os.Stat(filepath.Join(target, "classes.sum")); err != nil {
		return Program{}, missing("not built", version)
	}
	jars, err := os.ReadFile(filepath.Join(target, "classpath", version+".txt")) //nolint:gosec // the path is trusted
	if err != nil {
		return Program{}, missing("release "+version+" not resolved", version)
	}
	path := append([]string{classes}, filepath.SplitList(strings.TrimSpace(string(jars)))...)
	for _, entry := range path {
		if _, err := os.Stat(entry); err != nil { //nolint:gosec // the path is trusted
			return Program{}, missing(entry+" is gone", version)
		}
	}
	return Program{
		Version:   version,
		java:      java,
		classPath: strings.Join(path, string(filepath.ListSeparator)),
	}, nil
}

func missing(what, version string) error {
	return fmt.Errorf("%w: %s; run scripts/compat.sh %s", ErrMissing, what, version)
}

// The process is short-lived, so it uses neither the optimizing compiler nor the parallel garbage collector.
func (p Program) command() *exec.Cmd {
	//nolint:gosec // the program and the class path are trusted
	return exec.Command(p.java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-cp", p.classPath, mainClass)
}
