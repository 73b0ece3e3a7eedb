//go:build unix

package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// Process is a command that was started, with its guard.
type Process struct {
	guard   *guard
	tty     *terminal      // nil unless standard input is the controlling terminal
	started chan error     // gets the outcome of the start, once
	stops   chan os.Signal // gets what asks us, or made the command, to stop for a while
	done    chan struct{}  // closed when the command has ended

	pid  int // set before started gets its value
	code int // set before done is closed
}

// Start starts the program at path as a process group of its own, with the
// standard input and outputs of this process. argv has the name and arguments, env
// the environment. Errors are of type *cli.ExitError. Every Process must go through
// Supervise.
func Start(path string, argv, env []string) (*Process, error) {
	g, err := startGuard()
	if err != nil {
		return nil, cli.Errorf(cli.CodeRunFailed, "start the guard of %s: %w", argv[0], err)
	}
	p := &Process{
		guard:   g,
		tty:     controlling(),
		started: make(chan error, 1),
		stops:   make(chan os.Signal, 1),
		done:    make(chan struct{}),
	}
	signal.Notify(p.stops, syscall.SIGTSTP) // must not stop us alone: the command would go on
	go p.run(path, argv, env)
	if err := <-p.started; err != nil {
		p.release()
		return nil, cli.Errorf(startCode(err), "run %s: %w", argv[0], cause(err))
	}
	return p, nil
}

// run starts the command and waits for its end, all on one OS thread: the
// kernel takes the thread that started a process for its parent.
func (p *Process) run(path string, argv, env []string) {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: p.guard.pid()}
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
	_ = proc.Release() // waited for below, by number, to learn of stops as well
	p.started <- nil
	p.await()
}

// await waits until the command has ended.
func (p *Process) await() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // cannot happen: nothing else waits for it
			p.code = cli.CodeRunFailed
			return
		case status.Exited():
			p.code = status.ExitStatus()
			return
		case status.Signaled():
			p.code = 128 + int(status.Signal())
			return
		case status.Stopped() && p.tty != nil && byTerminal(status.StopSignal()):
			select {
			case p.stops <- status.StopSignal():
			default: // reported before and not yet seen
			}
		}
	}
}

// signal sends sig to the whole group. The guard is the group's leader and not yet waited
// for, so the group's number cannot have been reused.
func (p *Process) signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.guard.pid(), sig) // the group may be empty
}

// terminate asks the group to end.
func (p *Process) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // a stopped process would not receive it
}

// kill ends the group, guard included.
func (p *Process) kill() { p.signal(syscall.SIGKILL) }

// pass gives the group a signal that was meant for it.
func (p *Process) pass(sig os.Signal) {
	if number, ok := sig.(syscall.Signal); ok {
		p.signal(number)
	}
}

// suspend stops the group and then this process, as a job that consists of both. When this
// process continues, so does the group, unless the lock was lost in the meantime: then the
// group must not do anything any more.
func (p *Process) suspend(held context.Context) {
	p.signal(syscall.SIGSTOP)
	p.guard.wake()
	p.tty.takeBack(p.guard.pid())
	stopSelf()
	if held.Err() != nil {
		p.kill()
		return
	}
	p.tty.handOver(p.guard.pid())
	p.signal(syscall.SIGCONT)
}

// stopSelf stops this process and returns when it is continued. The call that
// stops us may return first, because the kernel lets another thread take the
// signal.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP); err == nil {
		<-continued
	}
}

// release lets the guard go and takes the terminal back.
func (p *Process) release() {
	signal.Stop(p.stops)
	p.tty.takeBack(p.guard.pid())
	p.guard.dismiss()
}

// startCode tells why a program did not start.
func startCode(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist): // of the program, or of the one named in its first line
		return cli.CodeNotFound
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return cli.CodeRunFailed
	}
	return cli.CodeNotRunnable
}
