package hold

import (
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/holding"
)

// signals are the values of --on-lost-signal: a process can be ended, and nothing else.
var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL}

var signalNames = []string{"KILL"}

func (o *options) detach(*cobra.Command) error { return noShell() }

func (o *options) background(*cobra.Command, []string) error { return noShell() }

func noShell() error {
	return cli.Errorf(holding.CodeFailed, "-s is not there on Windows: use redlatch hold without it, or redlatch run")
}
