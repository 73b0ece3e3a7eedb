//go:build linux

package stress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// process is a client process.
type process struct {
	name   string
	path   string // history file
	cmd    *exec.Cmd
	in     io.WriteCloser
	output chan string   // lines of its output; closed at EOF
	done   chan struct{} // closed when it has exited

	stopped history.Time // time of the SIGSTOP, 0 while it runs
}

// answerBound is the time limit for the reply of a process, in addition to the time for its work.
const answerBound = 30 * time.Second

// startProcess starts a process and waits until it is ready.
func startProcess(t *testing.T, cfg worker.Config, dir string) *process {
	t.Helper()
	cfg.History = filepath.Join(dir, cfg.Process+".jsonl")
	text, err := json.Marshal(cfg)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	log, err := os.Create(filepath.Join(dir, cfg.Process+".log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{name: cfg.Process, path: cfg.History, cmd: cmd, output: make(chan string, 16), done: make(chan struct{})}
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started := make(chan error, 1)
	go p.run(out, started)
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // may have exited
		<-p.done
	})
	p.expect(t, "ready")
	return p
}

// run starts the process and waits for it on the same OS thread, because the kernel kills the process when the thread
// that started it exits.
func (p *process) run(out io.Reader, started chan<- error) {
	defer close(p.done)
	defer close(p.output)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.output <- lines.Text()
	}
	_ = p.cmd.Wait() // the caller that ended the process knows its status
}

func (p *process) send(t *testing.T, what string) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, what)
	require.NoError(t, err, "process %s", p.name)
}

// expect waits for a line that begins with want and returns it.
func (p *process) expect(t *testing.T, want string) string {
	t.Helper()
	select {
	case line, ok := <-p.output:
		require.True(t, ok, "process %s exited before it printed %q\n%s", p.name, want, p.lastOutput())
		require.Contains(t, line, want, "process %s", p.name)
		return line
	case <-time.After(answerBound):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // print its goroutines
		<-p.done
		require.FailNow(t, "no answer", "process %s did not print %q within %v\n%s", p.name, want, answerBound, p.lastOutput())
		return ""
	}
}

// lastOutput returns the text that the process wrote to standard error, such as a panic or a data race.
func (p *process) lastOutput() string {
	text, err := os.ReadFile(p.path[:len(p.path)-len("jsonl")] + "log")
	if err != nil {
		return err.Error()
	}
	const most = 20000
	return string(text[:min(len(text), most)])
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.stopped = history.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
}

// resume continues the process and records how long it was frozen.
func (p *process) resume(t *testing.T, log *history.Writer) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	log.Write(history.Record{T: p.stopped, P: p.name, Kind: history.Stop, Until: history.Now()})
	p.stopped = 0
}

// kill kills the process. It reads the time first, so that later actions of the process do not count.
func (p *process) kill(t *testing.T, log *history.Writer) {
	t.Helper()
	log.Write(history.Record{P: p.name, Kind: history.Kill})
	require.NoError(t, p.cmd.Process.Kill())
	<-p.done
}

// exit lets the process exit while it still holds its locks.
func (p *process) exit(t *testing.T) {
	t.Helper()
	p.send(t, "exit")
	select {
	case <-p.done:
	case <-time.After(answerBound):
		require.FailNow(t, "no exit", "process %s", p.name)
	}
}

// release is the Redisson release that takes part.
const release = "4.3.1"

// javaBound is the time limit for a call to a live Redisson client. It only prevents a run from hanging.
const javaBound = time.Minute

// redisson is a Java process that acquires the same locks, with one caller per thread. Redisson does not report lost
// locks, so a hold is recorded only after its unlock has proved that the server had the owner all the time.
type redisson struct {
	peer  *peer.Peer
	name  string // in histories
	lease time.Duration
	log   *history.Writer
	marks *redis.Pool
	keys  []worker.Key
	seed  uint64
	ids   int // number of calls to begin, which only one goroutine makes
}

// findJava returns the program of a release. If it is missing, the run continues without Redisson
// unless Redisson is required.
func findJava(t *testing.T, release string) (program peer.Program, ok bool) {
	t.Helper()
	program, err := peer.Look(t, filepath.Join("..", ".."), release)
	if err != nil {
		t.Logf("RUNNING WITHOUT REDISSON: %v", err)
	}
	return program, err == nil
}

// startJava starts a Java process behind the proxy. It has the longest lease, because Redisson's readers shorten the
// leases of other readers to their own.
func (c *campaign) startJava(t *testing.T, program peer.Program) *redisson {
	t.Helper()
	number := len(c.java)
	keys := slices.DeleteFunc(slices.Clone(c.plan.keys), func(k worker.Key) bool { return k.Counter })
	r := &redisson{name: fmt.Sprint("java", number), log: c.log, keys: keys, seed: c.plan.seed + uint64(number)<<32, marks: &redis.Pool{
		MaxIdle: javaThreads, Dial: func() (redis.Conn, error) { return redis.DialURL(c.markServer.URL()) },
	}}
	for _, key := range r.keys {
		r.lease = max(r.lease, key.Lease)
	}
	t.Cleanup(func() { _ = r.marks.Close() }) // after the process, whose callers write to it
	r.peer = peer.Start(t, program)
	_, err := r.peer.Go(peer.Command{
		"op": "client", "client": "c", "thread": "main", "addresses": []string{c.proxy.URL()},
		"watchdog": r.lease.Milliseconds(),
	}).Wait(javaBound)
	require.NoError(t, err)
	return r
}

// javaThreads is the number of callers of the Java process.
const javaThreads = 4

// begin starts the threads and returns the function that stops them.
func (r *redisson) begin(t *testing.T) (rest func()) {
	t.Helper()
	quit := make(chan struct{})
	r.ids++
	var all sync.WaitGroup
	for i := range javaThreads {
		rnd := rand.New(rand.NewPCG(r.seed, uint64(r.ids*javaThreads+i)))
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-quit:
					return
				case <-time.After(time.Duration(rnd.Int64N(int64(30 * ms)))):
				}
				r.session(fmt.Sprintf("%s/%d.%d.%d", r.name, r.ids, i, n), fmt.Sprint("t", i), rnd)
			}
		})
	}
	return func() {
		close(quit)
		all.Wait()
	}
}

// session is one acquisition by a thread.
func (r *redisson) session(id, thread string, rnd *rand.Rand) {
	key := r.keys[rnd.IntN(len(r.keys))]
	if key.Permits > 0 {
		r.permitSession(id, thread, key, rnd)
		return
	}
	kind := "plain"
	switch reads := rnd.IntN(10) < 7; {
	case key.Fair:
		kind = "fair"
	case key.ReadWrite && reads:
		kind = "read"
	case key.ReadWrite:
		kind = "write"
	}
	command := peer.Command{"client": "c", "thread": thread, "name": key.Name, "kind": kind}
	called := history.Now()
	reply, err := r.peer.Go(command.With(peer.Command{"op": "tryLock", "wait": 3000})).Wait(javaBound)
	granted := history.Now()
	var got bool
	if err != nil || reply.Into(&got) != nil || !got {
		return
	}
	first := r.mark(key.Name)
	work(rnd)
	last := r.mark(key.Name)
	given := history.Now()
	_, err = r.peer.Go(command.With(peer.Command{"op": "unlock"})).Wait(javaBound)
	freed := history.Now()
	write := func(rec history.Record) {
		rec.P, rec.Key, rec.Hold = r.name, key.Name, id
		r.log.Write(rec)
	}
	// Record a hold of zero length unless the unlock proves more.
	r.log.Write(history.Record{T: called, P: r.name, Kind: history.Call, ID: id, Op: "redisson", Key: key.Name, Wait: javaBound})
	r.log.Write(history.Record{T: granted, P: r.name, Kind: history.Return, ID: id})
	write(history.Record{T: granted, Kind: history.Grant, ID: id, Owner: id, Lease: r.lease, Renewed: true, Read: kind == "read"})
	if err != nil {
		return
	}
	write(history.Record{T: given, Kind: history.Valid, Until: given})
	write(history.Record{T: given, Kind: history.Give, Op: "unlock"})
	write(history.Record{T: given, Kind: history.Call, ID: id + "u", Op: "unlock", Wait: javaBound})
	write(history.Record{T: freed, Kind: history.Return, ID: id + "u"})
	for _, entry := range []string{first, last} {
		write(history.Record{T: given, Kind: history.Mark, Entry: entry})
	}
}

// work sleeps for a random time.
func work(rnd *rand.Rand) { <-time.After(time.Duration(rnd.Int64N(int64(100 * ms)))) }

// mark adds an entry on the audit server.
func (r *redisson) mark(name string) string {
	conn := r.marks.Get()
	defer func() { _ = conn.Close() }() // back to the pool
	entry, err := redis.String(conn.Do("XADD", name, "MAXLEN", "~", 1000, "*", r.name, "1"))
	if err != nil {
		return ""
	}
	return entry
}
