package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/runner"
)

// brokenEnv makes the demo's workers skip the lock.
const brokenEnv = "REDLATCH_DEMO_BROKEN"

func newDemo(g *globals) *cobra.Command {
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch four processes contend for one lock while one is killed",
		Long: `Starts four processes that take one lock in turns. Each reads a counter from the
server, thinks, and writes it back plus one: without a lock they would overwrite
each other's work. One process is killed while it holds the lock; the others get
in when its lease is over. At the end the books are checked.

The server is inside this program unless --redis names another; REDIS_URL is not
looked at. On another server the demo uses keys of its own, redlatch-demo:*, and
removes them.

The exit code is 0 when the counter is right and no two processes were ever
inside together, 1 otherwise.`,
		Example: `  redlatch demo
  redlatch demo --duration 30s --redis redis://localhost:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if duration < time.Second || duration > time.Hour {
				return exitf(1, "--duration must be from 1s to 1h")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			err := demo.Run(ctx, demo.Options{
				Redis:    g.redis,
				Duration: duration,
				Broken:   os.Getenv(brokenEnv) != "",
				Program:  runner.Self(),
				Out:      os.Stdout,
			})
			if errors.Is(err, demo.ErrInterrupted) {
				return &exitError{code: runner.Code(os.Interrupt), err: err}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&duration, "duration", 10*time.Second, "how long the processes contend")
	return cmd
}

// newWorker is the program of the demo's processes.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    demo.WorkerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return demo.Work(os.Stdin, os.Stdout)
		},
	}
}
