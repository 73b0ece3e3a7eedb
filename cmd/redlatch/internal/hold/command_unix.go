//go:build unix

package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

var (
	stopping  = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	forwarded = append([]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, stopping...)
)

type process struct {
	guard   *guard
	tty     *terminal      // nil unless standard input is the controlling terminal
	started chan error     // receives the result of the start
	stops   chan os.Signal // signals that suspend redlatch or have suspended the command
	done    chan struct{}  // closed when the command has exited

	pid  int // set before started receives
	code int // set before done is closed
}

// startCommand starts the program in a new process group. The caller must call supervise.
func startCommand(path string, argv, env []string) (*process, error) {
	g, err := startGuard()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %s: %w", argv[0], err)
	}
	p := &process{
		guard:   g,
		tty:     controlling(),
		started: make(chan error, 1),
		stops:   make(chan os.Signal, 1),
		done:    make(chan struct{}),
	}
	signal.Notify(p.stops, syscall.SIGTSTP) // otherwise, redlatch would stop but the command would not
	go p.run(path, argv, env)
	if err := <-p.started; err != nil {
		p.release()
		return nil, cli.Errorf(startCode(err), "run %s: %w", argv[0], cause(err))
	}
	return p, nil
}

// run starts the command and waits for it on one OS thread, because the kernel sees that thread as its parent.
func (p *process) run(path string, argv, env []string) {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: p.guard.proc.Pid}
	dieWithParent(attr)
	p.tty.give(attr)
	proc, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attr,
	})
	if err != nil {
		p.started <- err
		return
	}
	p.pid = proc.Pid
	_ = proc.Release() // await uses the process ID and also sees stops
	p.started <- nil
	p.await()
}

func (p *process) await() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // cannot happen, because only await waits for it
			p.code = cli.CodeRunFailed
			return
		case status.Exited():
			p.code = status.ExitStatus()
			return
		case status.Signaled():
			p.code = cli.SignalCode(status.Signal())
			return
		case status.Stopped() && p.tty != nil && byTerminal(status.StopSignal()):
			select {
			case p.stops <- status.StopSignal():
			default: // an earlier stop has not been handled yet
			}
		}
	}
}

// signal sends sig to the group. Its ID cannot have been reused, because the guard has not been waited for.
func (p *process) signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.guard.proc.Pid, sig) // the group may be empty
}

func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // a stopped process would not handle SIGTERM
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

func (p *process) pass(sig os.Signal) {
	if number, ok := sig.(syscall.Signal); ok {
		p.signal(number)
	}
}

// suspend stops the group and then this process. When this process continues, so does the group, unless the lock was
// lost.
func (p *process) suspend(held context.Context) {
	p.signal(syscall.SIGSTOP)
	_ = syscall.Kill(p.guard.proc.Pid, syscall.SIGCONT) // the guard must keep running
	p.tty.takeBack(p.guard.proc.Pid)
	stopSelf()
	if held.Err() != nil {
		p.kill()
		return
	}
	p.tty.handOver(p.guard.proc.Pid)
	p.signal(syscall.SIGCONT)
}

// stopSelf stops this process and returns when it continues. It waits for SIGCONT, because Kill may
// return before the process stops.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP); err == nil {
		<-continued
	}
}

func (p *process) release() {
	signal.Stop(p.stops)
	p.tty.takeBack(p.guard.proc.Pid)
	p.guard.dismiss()
}

func startCode(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cli.CodeNotFound
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return cli.CodeRunFailed
	}
	return cli.CodeNotRunnable
}

const orderlyExit = 'b'

// guard is the leader of the command's process group. It kills the group if redlatch dies.
type guard struct {
	proc *os.Process
	line *os.File // only redlatch has this end; it closes without orderlyExit if redlatch dies
}

func startGuard() (*guard, error) {
	in, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ready, out, err := os.Pipe()
	if err != nil {
		shut(in, line)
		return nil, err
	}
	defer shut(ready)
	proc, err := os.StartProcess(cli.Executable(), []string{"redlatch", guardCommand}, &os.ProcAttr{
		// Standard error could keep another process's pipe open.
		Files: []*os.File{in, out, nil},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	shut(in, out)
	if err != nil {
		shut(line)
		return nil, err
	}
	g := &guard{proc: proc, line: line}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		g.dismiss()
		return nil, fmt.Errorf("it did not start: %w", err)
	}
	return g, nil
}

// dismiss stops the guard and waits for it. The rest of the group keeps running.
func (g *guard) dismiss() {
	_, _ = g.line.Write([]byte{orderlyExit}) // fails if the guard was killed with its group
	shut(g.line)
	_, _ = g.proc.Wait()
}

func shut(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// guardGroup kills its own process group if standard input ends without orderlyExit.
func guardGroup() int {
	if syscall.Getpgrp() != syscall.Getpid() {
		fmt.Fprintln(os.Stderr, "redlatch: "+guardCommand+" is started by redlatch run only")
		return cli.CodeRunFailed
	}
	// Signals to the group must not stop the guard.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	_, _ = os.Stdout.Write([]byte{1}) // the parent may have died
	shut(os.Stdout)
	var word [1]byte
	if n, _ := os.Stdin.Read(word[:]); n == 1 && word[0] == orderlyExit {
		return 0
	}
	_ = syscall.Kill(0, syscall.SIGKILL) // does not return
	return cli.CodeRunFailed
}

// terminal is the controlling terminal, if standard input is one, or else nil.
type terminal struct {
	fd    int
	group int // redlatch's process group
}

func controlling() *terminal {
	t := &terminal{fd: int(os.Stdin.Fd()), group: syscall.Getpgrp()}
	if _, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err != nil {
		return nil
	}
	return t
}

func (t *terminal) isFront(group int) bool {
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && front == group
}

func (t *terminal) give(attr *syscall.SysProcAttr) {
	if t != nil && t.isFront(t.group) {
		attr.Foreground, attr.Ctty = true, t.fd
	}
}

func (t *terminal) handOver(group int) {
	if t != nil && t.isFront(t.group) {
		t.set(group)
	}
}

func (t *terminal) takeBack(group int) {
	if t != nil && t.isFront(group) {
		t.set(t.group)
	}
}

// set makes group the foreground group. If a background process does this, it is stopped unless it ignores SIGTTOU.
// The signal must be reset afterwards, because children would inherit its state.
func (t *terminal) set(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) // fails if the terminal has hung up
}

func byTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTSTP || sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}
