package demo

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// brokenEnv gives each worker a lock of its own, to test that the demo fails then.
const brokenEnv = "REDLATCH_DEMO_BROKEN"

const demoHelp = `Starts four processes that contend for one lock. Each reads a counter from the
server, thinks, and writes it back plus one: without a lock they would
overwrite each other's work. One process is killed while it holds the lock; the
others get it when its lease is over. At the end the counter is compared with
what the processes reported.

With --fair, three processes of eight workers each contend for a fair lock. One
process is killed while one of its workers holds the lock and others are
queued. The dead workers keep their places in the queue until the live ones
find that nobody has listened on their channels for a grace, which is short
here. The summary also says whether a live worker was overtaken, judged by the
server's queue at the time of each release.

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
	r := &run{common: workerConfig{Broken: os.Getenv(brokenEnv) != ""}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes contend for a lock while one of them is killed",
		Long:  demoHelp,
		Example: `  redlatch demo
  redlatch demo --fair
  redlatch demo --duration 30s --redis redis://localhost:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if r.duration < time.Second || r.duration > time.Hour {
				return cli.Usagef("--duration must be from 1s to 1h")
			}
			if r.common.Redis, err = demoServer(cmd.Context(), g); err != nil {
				return err
			}
			r.out = cmd.OutOrStdout()
			var failed error
			err = cli.UntilSignal(cmd.Context(), errInterrupted, func(ctx context.Context) error {
				if err := r.run(ctx); !errors.Is(err, errInterrupted) {
					failed = err
				}
				return nil
			}, syscall.SIGHUP)
			return cmp.Or(failed, err) // a wrong result counts, even if a signal ended the demo
		},
	}
	cmd.Flags().DurationVar(&r.duration, "duration", 10*time.Second, "how long the processes contend, at least")
	cmd.Flags().BoolVar(&r.common.Fair, "fair", false, "contend for a fair lock")
	return cmd
}

// demoServer returns the settings for the server of --redis, which must not be a replica, or
// empty settings without --redis.
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

// NewWorker returns the hidden command that the demo's processes run.
func NewWorker(*cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return work(os.Stdin, os.Stdout) },
	}
}
