package hold

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

var shell = []string{"cmd.exe", "/c"}

func endWithChildren(*exec.Cmd) {}

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL}

func (o *holdFlags) detach(*cobra.Command) error { return noShell() }

func (o *holdFlags) background(*cobra.Command, []string) error { return noShell() }

func noShell() error {
	return errors.New("-s is not available on Windows: use redlatch hold without it, or redlatch run")
}

func socketPath(string) (string, error) { return "", errors.ErrUnsupported }

func ask(context.Context, string, string) (answer, error) { return answer{}, errors.ErrUnsupported }

func (w *watched) await() { _, _ = w.process.Wait() }

// exists returns true because os.FindProcess fails otherwise.
func exists(*os.Process) bool { return true }

var (
	stopping  = []os.Signal{os.Interrupt, syscall.SIGTERM}
	forwarded = stopping
)

func guardGroup() int { return cli.CodeRunFailed }

type process struct {
	cmd   *exec.Cmd
	stops chan os.Signal // never used here
	done  chan struct{}  // closed when the command has exited
	code  int            // set before done is closed
}

// startCommand starts the program. The caller must call supervise.
func startCommand(path string, argv, env []string) (*process, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		return nil, cli.Errorf(cli.CodeNotRunnable, "run %s: %w", argv[0], err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the result is in ProcessState
		p.code = cmd.ProcessState.ExitCode()
	}()
	return p, nil
}

// pass kills the command on SIGTERM. The console itself sends Ctrl-C to all its processes.
func (p *process) pass(sig os.Signal) {
	if sig == syscall.SIGTERM {
		p.kill()
	}
}

func (p *process) terminate() {}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails if the command has exited

func (p *process) suspend(context.Context) {}

func (p *process) release() {}
