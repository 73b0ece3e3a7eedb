package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/runner"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	codeConflict  = 124 // the lock was not acquired
	defaultLease  = 30 * time.Second
	minRenewed    = time.Second // below this, a hiccup of the network loses the lock
	maxExitStatus = 255
)

// runOptions are the flags of run.
type runOptions struct {
	*globals
	wait, lease, watchdog time.Duration
	bounded, try, fair    bool
	conflict              int
}

func newRun(g *globals) *cobra.Command {
	o := &runOptions{globals: g}
	cmd := &cobra.Command{
		Use:     "run [flags] NAME -- COMMAND [ARG...]",
		Short:   "Run a command under a lock",
		Long:    runHelp,
		Example: runExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return exitf(runner.CodeFailed, "usage: redlatch %s", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.bounded = cmd.Flags().Changed("wait")
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], args[1:])
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &exitError{code: runner.CodeFailed, err: err}
	})
	f := cmd.Flags()
	f.DurationVar(&o.wait, "wait", 0, "give up when the lock is not free within this time (default: wait for ever)")
	f.BoolVar(&o.try, "try", false, "give up at once when the lock is held")
	f.BoolVar(&o.fair, "fair", false, "take the fair lock of this name: whoever waits is served\nin the order of arrival, as with getFairLock in Java")
	f.DurationVar(&o.lease, "lease", 0, "hold the lock for this long at most; COMMAND is ended\nbefore it is over")
	f.DurationVar(&o.watchdog, "watchdog", defaultLease,
		"renewed lease, when there is no --lease: how long the lock\nstays when this machine dies; equal to lockWatchdogTimeout in Java")
	f.IntVar(&o.conflict, "conflict-exit-code", codeConflict, "exit code when the lock was not acquired")
	return cmd
}

// check refuses flags that make no sense.
func (o *runOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case o.try && o.bounded:
		return exitf(runner.CodeFailed, "--try and --wait contradict each other")
	case changed("lease") && changed("watchdog"):
		return exitf(runner.CodeFailed, "--lease and --watchdog contradict each other")
	case changed("lease") && o.lease < time.Millisecond:
		return exitf(runner.CodeFailed, "--lease must be at least 1ms")
	case o.watchdog < minRenewed:
		return exitf(runner.CodeFailed, "--watchdog must be at least %v", minRenewed)
	case o.wait < 0:
		return exitf(runner.CodeFailed, "--wait must not be negative")
	case o.conflict < 0 || o.conflict > maxExitStatus:
		return exitf(runner.CodeFailed, "--conflict-exit-code must be from 0 to %d", maxExitStatus)
	}
	return nil
}

// margin is how long before the end of the lease the command must be on its way
// out.
func (o *runOptions) margin() time.Duration {
	if o.lease > 0 {
		return runner.Margin(o.lease)
	}
	return runner.Margin(o.watchdog)
}

// run is the whole life: acquire, start, wait, unlock, exit code.
func (o *runOptions) run(ctx context.Context, name string, argv []string) error {
	path, err := runner.Find(argv[0])
	if err != nil {
		return notRun(err)
	}
	signals, stop := runner.Signals()
	defer stop()
	client, hold, err := o.acquire(ctx, name, signals)
	if err != nil {
		return err
	}
	// Also finishes, for a moment, what an Unlock without an answer left open.
	defer func() { _ = client.Close() }()
	proc, err := runner.Start(path, argv)
	if err != nil {
		_ = hold.Unlock() // the lock was not used: its lease frees it at worst
		return notRun(err)
	}
	end := runner.Supervise(hold.Context(ctx), proc, signals, runner.Grace(o.margin()))
	return o.finish(name, end, hold.Unlock())
}

// finish makes the exit code of how the command and the unlocking went.
func (o *runOptions) finish(name string, end runner.End, unlocked error) error {
	switch {
	case (end.Lost || errors.Is(unlocked, redlatch.ErrLost)) && o.lease > 0:
		return exitf(runner.CodeFailed, "lock %q was lost while the command ran: its lease of %v was over, or somebody took it", name, o.lease)
	case end.Lost || errors.Is(unlocked, redlatch.ErrLost):
		return exitf(runner.CodeFailed, "lock %q was lost while the command ran: it could not be renewed, or somebody took it", name)
	case unlocked != nil:
		// The command had the lock to its end, which is what its user needs to know.
		fmt.Fprintf(os.Stderr, "redlatch: lock %q could not be freed and is left to its lease: %s\n", name, conn.Reason(unlocked))
	}
	if end.Code != 0 {
		return &exitError{code: end.Code}
	}
	return nil
}

func notRun(err error) error {
	var failed *runner.Error
	if errors.As(err, &failed) {
		return &exitError{code: failed.Code, err: err}
	}
	return &exitError{code: runner.CodeFailed, err: err}
}

// acquire connects and takes the lock. A signal ends the waiting.
func (o *runOptions) acquire(ctx context.Context, name string, signals <-chan os.Signal) (*redlatch.Client, *rlock.Hold, error) {
	ctx, caught := cancelOn(ctx, signals)
	client, hold, err := o.lock(ctx, name)
	sig := caught()
	if sig == nil {
		return client, hold, err
	}
	if err == nil {
		_ = hold.Unlock() // the signal is what counts; the lease frees it at worst
		_ = client.Close()
	}
	return nil, nil, &exitError{code: runner.Code(sig)}
}

// lock connects and takes the lock. Its errors have their exit codes.
func (o *runOptions) lock(ctx context.Context, name string) (*redlatch.Client, *rlock.Hold, error) {
	url := o.url()
	if err := conn.Check(url); err != nil {
		return nil, nil, &exitError{code: runner.CodeFailed, err: err}
	}
	client, err := redlatch.Open(ctx, url,
		redlatch.WithWatchdogTimeout(o.watchdog), redlatch.WithLossMargin(o.margin()))
	if err != nil {
		return nil, nil, exitf(runner.CodeFailed, "%s", conn.Problem(url, err))
	}
	newLock := rlock.New
	if o.fair {
		newLock = rfairlock.New
	}
	hold, err := o.take(ctx, newLock(client, name))
	if err != nil {
		_ = client.Close() // the first error tells more
		return nil, nil, o.notTaken(name, err)
	}
	return client, hold, nil
}

func (o *runOptions) take(ctx context.Context, lock *rlock.Lock) (*rlock.Hold, error) {
	var opts []rlock.Option
	if o.lease > 0 {
		opts = append(opts, rlock.WithLease(o.lease))
	}
	if o.try {
		return lock.TryLock(ctx, opts...)
	}
	if o.bounded {
		opts = append(opts, rlock.WithWait(o.wait))
	}
	return lock.Lock(ctx, opts...)
}

// notTaken makes the exit code and the line of an acquire that failed.
func (o *runOptions) notTaken(name string, err error) error {
	var at *redlatch.LockError
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired) && errors.As(err, &at) && at.TTL > 0:
		return exitf(o.conflict, "lock %q is held by somebody else, for %v if it is not renewed",
			name, at.TTL.Round(100*time.Millisecond))
	case errors.Is(err, redlatch.ErrNotAcquired) && o.fair && at != nil && at.Holder.IsZero():
		return exitf(o.conflict, "lock %q is free, but others are queued for it", name)
	case errors.Is(err, redlatch.ErrNotAcquired):
		return exitf(o.conflict, "lock %q is held by somebody else", name)
	case errors.Is(err, redlatch.ErrNotSent), errors.Is(err, redlatch.ErrUncertain):
		return exitf(runner.CodeFailed, "%s", conn.Problem(o.url(), err))
	}
	return &exitError{code: runner.CodeFailed, err: err}
}

// cancelOn returns a context that ends when a signal arrives, and a function
// that stops listening and returns that signal, nil if there was none.
func cancelOn(parent context.Context, signals <-chan os.Signal) (context.Context, func() os.Signal) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		select {
		case sig := <-signals:
			caught <- sig
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		return <-caught
	}
}

// newGuard is the program of a command's guard, see package runner.
func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:    runner.GuardCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := runner.Guard(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		},
	}
}
