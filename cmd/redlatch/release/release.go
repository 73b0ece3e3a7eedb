// Package release is the command redlatch release: it ends what redlatch hold -s has left in the
// background.
//
//	the environment, or --owner ─▶ control.Ask ─▶ the process frees the lock ─▶ exit code
package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/control"
	"github.com/redlatch/redlatch/internal/tool/holding"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	help = `Frees the lock that redlatch hold -s holds in the background, and waits until
that is done. The variables that hold -s has set say which; with NAME it is
an error if they are those of another lock. With --owner it is the hold of that
owner, by the same user on this machine: the value of REDLATCH_OWNER, or of
REDLATCH_PERMIT for a permit.

No signal is sent: the process is asked through its socket, so that another
process with its number is never ended. It is not there on Windows.

Exit codes:
  0     the lock was held to this moment, and is free, or left to its lease
        for --at-least
  125   the lock was lost, or its hold had ended before, or redlatch failed;
        standard error says which
  128+n signal n ended the waiting: 130 SIGINT, 143 SIGTERM`

	examples = `  # The lock of this script
  redlatch release

  # Two locks: each hold sets the same variables
  eval "$(redlatch hold -s data)" || exit; data=$REDLATCH_OWNER
  eval "$(redlatch hold -s index)" || exit
  redlatch release index
  redlatch release --owner "$data"`

	// defaultWait is how long the process may take.
	defaultWait = time.Minute
)

// options are the flags of release.
type options struct {
	owner string
	wait  time.Duration
}

// New returns the command.
func New(*cli.Globals) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "release [NAME]",
		Short:   "Free the lock that hold -s holds",
		Long:    help,
		Example: examples,

		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &cli.ExitError{Code: holding.CodeFailed, Err: cli.WrongArgs(cmd, args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.UntilSignal(cmd.Context(), nil, func(ctx context.Context) error { return o.release(ctx, cmd, args) })
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &cli.ExitError{Code: holding.CodeFailed, Err: cli.WrongFlag(cmd, err)}
	})
	cmd.Flags().StringVar(&o.owner, "owner", "", "owner, or permit, of the hold, in place of that in the environment")
	cmd.Flags().DurationVar(&o.wait, "wait", defaultWait, "give up when the lock is not freed within this time")
	return cmd
}

// release asks the process, and tells what became of the hold.
func (o *options) release(ctx context.Context, cmd *cobra.Command, args []string) error {
	if o.wait < time.Millisecond {
		return cli.Errorf(holding.CodeFailed, "--wait must be at least 1ms")
	}
	path, owner, err := o.which(cmd.Flags().Changed("owner"), args)
	if err != nil {
		return &cli.ExitError{Code: holding.CodeFailed, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	got, err := control.Ask(ctx, path, owner)
	switch {
	case errors.Is(err, control.ErrEnded):
		return cli.Errorf(holding.CodeFailed, "%w: it was released before, or ended with a signal or with its process", err)
	case errors.Is(err, control.ErrKilled):
		return cli.Errorf(holding.CodeFailed, "%w: the lock stays until its lease is over", err)
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Errorf(holding.CodeFailed, "the lock was not freed within %v", o.wait)
	case err != nil:
		return cli.Errorf(holding.CodeFailed, "ask the process that holds it: %w", err)
	case got.Code != 0:
		return cli.Errorf(got.Code, "%s", got.Text)
	case got.Text != "":
		output.Messagef(os.Stderr, "%s", sanitize.Message(got.Text))
	}
	return nil
}

// which returns the socket of the hold, and its owner.
func (o *options) which(named bool, args []string) (path, owner string, err error) {
	if named {
		if len(args) > 0 {
			return "", "", fmt.Errorf("--owner stands in place of NAME: leave %s out", sanitize.Word(args[0]))
		}
		path, err = control.Path(o.owner)
		return path, o.owner, err
	}
	path, owner = os.Getenv(holding.EnvHold), os.Getenv(holding.EnvOwner)
	if owner == "" {
		owner = os.Getenv(holding.EnvPermit)
	}
	switch lock := os.Getenv(holding.EnvLock); {
	case path == "" || owner == "":
		return "", "", errors.New(`the environment names no hold: eval "$(redlatch hold -s NAME)" sets it, or --owner names one`)
	case len(args) > 0 && args[0] == "":
		return "", "", errors.New("NAME is empty")
	case len(args) > 0 && args[0] != lock:
		return "", "", fmt.Errorf("the environment is that of lock %s, not of %s: --owner names the hold of another", sanitize.Word(lock), sanitize.Word(args[0]))
	}
	return path, owner, nil
}
