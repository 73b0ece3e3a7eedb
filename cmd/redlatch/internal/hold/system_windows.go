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

// shell is what reads a command line.
var shell = []string{"cmd.exe", "/c"}

// endWithChildren does nothing: there are no process groups.
func endWithChildren(*exec.Cmd) {}

// signals are the values of --on-lost-signal: a process can be ended, and nothing else.
var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL}

func (o *holdFlags) detach(*cobra.Command) error { return noShell() }

func (o *holdFlags) background(*cobra.Command, []string) error { return noShell() }

func noShell() error {
	return cli.Errorf(cli.CodeRunFailed, "-s is not there on Windows: use redlatch hold without it, or redlatch run")
}

// socketPath returns an error: there are no shells that take assignments.
func socketPath(string) (string, error) { return "", errors.ErrUnsupported }

// ask returns an error.
func ask(context.Context, string, string) (answer, error) { return answer{}, errors.ErrUnsupported }

// await returns when the process has ended: it need not be a child here.
func (w *watched) await() { _, _ = w.process.Wait() }

// exists reports whether there is a process: one that there is not was not found.
func exists(*os.Process) bool { return true }
