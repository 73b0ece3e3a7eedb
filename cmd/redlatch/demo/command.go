package demo

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/executable"
)

// brokenEnv makes the demo's workers skip the lock.
const brokenEnv = "REDLATCH_DEMO_BROKEN"

const demoHelp = `Starts four processes that take one lock in turns. Each reads a counter from
the server, thinks, and writes it back plus one: without a lock they would
overwrite each other's work. One process is killed while it holds the lock; the
others get it when its lease is over. At the end the counter is compared with
what the processes reported.

With --fair, three processes of eight workers each claim numbered jobs from a
list, under a fair lock. One process is killed while one of its workers holds
the lock and others are queued. Dead workers keep their places in the queue
until their deadlines, or until the live ones notice that their channels have
no listener: the demo keeps both times short and shows what they cost. At the
end each job must have been done once, and no live worker may have been
overtaken, judged by the server's queue at the time of each claim.

The server is inside this program unless --redis names another; REDIS_URL is
not looked at. On another server the demo uses keys of its own,
redlatch-demo:*, and removes them.

Exit codes:
  0      the result is right
  1      it is wrong: two workers held the lock at once, work was lost or done
         twice, or a live worker was overtaken; or the demo could not run
  2      the server is a replica, which gives no locks, or the command line or
         the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	var opts options
	var fair bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes contend for a lock while one of them is killed",
		Long:  demoHelp,
		Example: `  redlatch demo
  redlatch demo --fair
  redlatch demo --duration 30s --redis redis://localhost:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDemo(cmd, &opts, fair); err != nil {
				return err
			}
			var err error
			if opts.Redis, err = demoServer(cmd.Context(), g); err != nil {
				return err
			}
			opts.Program, opts.Out = executable.Path(), cmd.OutOrStdout()
			opts.Broken = os.Getenv(brokenEnv) != ""
			var failed error
			err = cli.UntilSignal(cmd.Context(), errInterrupted, func(ctx context.Context) error {
				if err := runDemo(ctx, opts); !errors.Is(err, errInterrupted) {
					failed = err
				}
				return nil
			}, syscall.SIGHUP)
			return cmp.Or(failed, err) // a wrong result counts, even if a signal ended the demo
		},
	}
	f := cmd.Flags()
	f.DurationVar(&opts.Duration, "duration", 10*time.Second, "how long the processes contend, without --fair")
	f.BoolVar(&fair, "fair", false, "claim jobs under a fair lock")
	f.IntVar(&opts.Jobs, "jobs", 500, "how many jobs there are with --fair")
	return cmd
}

// demoServer returns how to reach the server of --redis, which is no replica, nothing when that
// is not given.
func demoServer(ctx context.Context, g *cli.Globals) (connect.Settings, error) {
	if g.Redis == "" {
		return connect.Settings{}, nil
	}
	set, err := g.Settings()
	if err != nil {
		return set, err
	}
	srv, err := cli.ServerOf(set)
	switch {
	case err != nil:
		return set, err
	case srv.IsDeployment():
		return set, cli.Usagef("the demo has one server: redis://, rediss:// or unix://, not %s", set)
	}
	return set, cli.NeedMaster(ctx, srv)
}

// checkDemo refuses flags that make no sense, and sets what they mean.
func checkDemo(cmd *cobra.Command, opts *options, fair bool) error {
	switch changed := cmd.Flags().Changed; {
	case fair && changed("duration"):
		return cli.Usagef("--duration is for the demo without --fair, which ends when the jobs are done")
	case !fair && changed("jobs"):
		return cli.Usagef("--jobs is for the demo with --fair")
	case fair && (opts.Jobs < 100 || opts.Jobs > 5000):
		return cli.Usagef("--jobs must be from 100 to 5000")
	case opts.Duration < time.Second || opts.Duration > time.Hour:
		return cli.Usagef("--duration must be from 1s to 1h")
	}
	if !fair {
		opts.Jobs = 0
	}
	return nil
}

// NewWorker is the program of the demo's processes.
func NewWorker(*cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return work(os.Stdin, os.Stdout)
		},
	}
}
