package runner

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Guard does nothing: there is no process group to guard.
func Guard() int { return cli.CodeRunFailed }

// Process is a command that was started.
type Process struct {
	cmd   *exec.Cmd
	stops chan os.Signal // never used here
	done  chan struct{}  // closed when the command has ended
	code  int            // set before done is closed
}

// Start starts the program at path with the standard input and outputs of this
// process. argv has the name and arguments, env the environment. Errors are of type
// *cli.ExitError. Every Process must go through Supervise.
func Start(path string, argv, env []string) (*Process, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		return nil, cli.Errorf(cli.CodeNotRunnable, "run %s: %w", argv[0], err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the state tells
		p.code = cmd.ProcessState.ExitCode()
	}()
	return p, nil
}

// pass ends the command when this process gets a signal to end. Ctrl-C has reached the
// command by itself: a console sends it to all of its processes.
func (p *Process) pass(sig os.Signal) {
	if sig == syscall.SIGTERM {
		p.kill()
	}
}

// terminate does nothing: there is no polite way that every program knows.
func (p *Process) terminate() {}

func (p *Process) kill() { _ = p.cmd.Process.Kill() } // it may have ended by itself

func (p *Process) suspend(context.Context) {}

func (p *Process) release() {}
