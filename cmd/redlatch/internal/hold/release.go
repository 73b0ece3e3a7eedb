package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// releaseWait is the default of --wait.
const releaseWait = time.Minute

var (
	// errEnded: the socket does not exist. The process ended in order or never existed.
	errEnded = errors.New("no hold of this owner is left")
	// errKilled: the process ended without an answer.
	errKilled = errors.New("the process that held it was killed")
	// errOther: the process holds a lock for another owner.
	errOther = errors.New("it is a hold of another owner")
)

type releaseFlags struct {
	owner string
	wait  time.Duration
}

// NewRelease returns the command release.
func NewRelease(*cli.Globals) *cobra.Command {
	o := &releaseFlags{}
	cmd := &cobra.Command{
		Use:     "release [NAME]",
		Short:   "Free the lock that hold -s holds",
		Long:    releaseHelp,
		Example: releaseExamples,

		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &cli.ExitError{Code: cli.CodeRunFailed, Err: cli.WrongArgs(cmd, args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.UntilSignal(cmd.Context(), nil, func(ctx context.Context) error { return o.release(ctx, cmd, args) })
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &cli.ExitError{Code: cli.CodeRunFailed, Err: cli.WrongFlag(cmd, err)}
	})
	cmd.Flags().StringVar(&o.owner, "owner", "", "owner, or permit, of the hold, in place of that in the environment")
	cmd.Flags().DurationVar(&o.wait, "wait", releaseWait, "give up when the lock is not freed within this time")
	return cmd
}

// release sends the request, and reports how the hold ended.
func (o *releaseFlags) release(ctx context.Context, cmd *cobra.Command, args []string) error {
	if o.wait < time.Millisecond {
		return cli.Errorf(cli.CodeRunFailed, "--wait must be at least 1ms")
	}
	path, owner, err := o.which(cmd.Flags().Changed("owner"), args)
	if err != nil {
		return &cli.ExitError{Code: cli.CodeRunFailed, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	got, err := ask(ctx, path, owner)
	switch {
	case errors.Is(err, errEnded):
		return cli.Errorf(cli.CodeRunFailed, "%w: it was released before, or ended with a signal or with its process", err)
	case errors.Is(err, errKilled):
		return cli.Errorf(cli.CodeRunFailed, "%w: the lock stays until its lease is over", err)
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Errorf(cli.CodeRunFailed, "the lock was not freed within %v", o.wait)
	case err != nil:
		return cli.Errorf(cli.CodeRunFailed, "ask the process that holds it: %w", err)
	}
	return got.exit()
}

// which returns the socket of the hold, and its owner.
func (o *releaseFlags) which(named bool, args []string) (path, owner string, err error) {
	if named {
		if len(args) > 0 {
			return "", "", fmt.Errorf("--owner stands in place of NAME: leave %s out", sanitize.Word(args[0]))
		}
		path, err = socketPath(o.owner)
		return path, o.owner, err
	}
	path, owner = os.Getenv(envHold), os.Getenv(envOwner)
	if owner == "" {
		owner = os.Getenv(envPermit)
	}
	switch lock := os.Getenv(envLock); {
	case path == "" || owner == "":
		return "", "", errors.New(`the environment names no hold: eval "$(redlatch hold -s NAME)" sets it, or --owner names one`)
	case len(args) > 0 && args[0] == "":
		return "", "", errors.New("NAME is empty")
	case len(args) > 0 && args[0] != lock:
		return "", "", fmt.Errorf("the environment is that of lock %s, not of %s: --owner names the hold of another", sanitize.Word(lock), sanitize.Word(args[0]))
	}
	return path, owner, nil
}
