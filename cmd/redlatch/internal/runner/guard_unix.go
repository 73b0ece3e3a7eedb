//go:build unix

package runner

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// orderlyExit is what the guard reads when it is not needed any more.
const orderlyExit = 'b'

// guard is the process that outlives us if it must.
type guard struct {
	proc *os.Process
	line *os.File // we alone have this end: when it closes unsaid, we are dead
}

// startGuard starts a guard as the leader of a new process group and returns
// when it is on guard.
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
	proc, err := os.StartProcess(cli.Executable(), []string{"redlatch", GuardCommand}, &os.ProcAttr{
		// Not our standard error: a guard must not keep the pipe of another process open.
		Files: []*os.File{in, out, nil},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	shut(in, out) // the guard has its own
	if err != nil {
		shut(line)
		return nil, err
	}
	g := &guard{proc: proc, line: line}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		g.dismiss()
		return nil, fmt.Errorf("it did not come up: %w", err)
	}
	return g, nil
}

// pid is also the number of the process group.
func (g *guard) pid() int { return g.proc.Pid }

// wake continues the guard alone.
func (g *guard) wake() {
	_ = syscall.Kill(g.proc.Pid, syscall.SIGCONT) // it is there until dismissed
}

// dismiss ends the guard and waits for it. The group is left alone.
func (g *guard) dismiss() {
	_, _ = g.line.Write([]byte{orderlyExit}) // fails if it was killed with its group
	shut(g.line)
	_, _ = g.proc.Wait() // how it ended does not matter
}

func shut(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe, nothing is buffered
	}
}

// Guard is the program of the guard process. Its standard input is a pipe. When
// that ends without the byte that means goodbye, it kills its process group and
// itself with it. It returns the exit code.
func Guard() int {
	if syscall.Getpgrp() != syscall.Getpid() {
		fmt.Fprintln(os.Stderr, "redlatch: "+GuardCommand+" is started by redlatch run, not by hand")
		return cli.CodeRunFailed
	}
	// What is sent to the group is not meant for its guard.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	_, _ = os.Stdout.Write([]byte{1}) // the parent may be dead by now
	shut(os.Stdout)
	var word [1]byte
	if n, _ := os.Stdin.Read(word[:]); n == 1 && word[0] == orderlyExit {
		return 0
	}
	_ = syscall.Kill(0, syscall.SIGKILL) // does not return
	return cli.CodeRunFailed
}
