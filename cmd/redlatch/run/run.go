// Package run is the command redlatch run: it runs a command while it holds a lock.
//
//	run.New ─▶ acquire ─▶ runner.Start ─▶ runner.Supervise ─▶ giveUp ─▶ exit code
//
// Package runner has the processes, and the guard that kills them with redlatch.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/run/runner"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const (
	onLostTerm    = "term"
	onLostKill    = "kill"
	onLostIgnore  = "ignore"
	codeConflict  = 124 // the lock was not acquired
	defaultLease  = 30 * time.Second
	minRenewed    = time.Second // below this, a hiccup of the network loses the lock
	maxExitStatus = 255
)

// onLost is what the values of --on-lost mean.
var onLost = map[string]runner.Action{
	onLostTerm: runner.Terminate, onLostKill: runner.Kill, onLostIgnore: runner.Ignore,
}

// runOptions are the flags of run.
type runOptions struct {
	*cli.Globals
	wait, lease, watchdog time.Duration
	maxHold, atLeast      time.Duration
	bounded, try          bool
	fair, fenced          bool
	read, write           bool
	permits               string
	of                    permits // --permits, parsed
	onLost                string
	conflict              int
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	o := &runOptions{Globals: g}
	cmd := &cobra.Command{
		Use:     "run [flags] {NAME | --permits NAME:N} -- COMMAND [ARG...]",
		Short:   "Run a command under a lock",
		Long:    runHelp,
		Example: runExamples,

		ValidArgsFunction: completeRun,
		Args: func(cmd *cobra.Command, args []string) error {
			if why := wrongArgs(cmd, args); why != "" {
				return cli.Errorf(runner.CodeFailed, "%s. Usage: redlatch %s; `redlatch run --help` tells more", why, cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.bounded = cmd.Flags().Changed("wait")
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.permits != "" {
				return o.run(cmd.Context(), o.of.name, args)
			}
			return o.run(cmd.Context(), args[0], args[1:])
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if err = cli.WrongFlag(cmd, err); !slices.Contains(os.Args, "--") {
			err = fmt.Errorf("%w. COMMAND and its flags come behind --", err)
		}
		return &cli.ExitError{Code: runner.CodeFailed, Err: err}
	})
	o.register(cmd)
	return cmd
}

// wrongArgs says what is wrong with the arguments, "" for nothing.
func wrongArgs(cmd *cobra.Command, args []string) string {
	names, before := 1, cmd.ArgsLenAtDash()
	if cmd.Flags().Changed("permits") {
		names = 0
	}
	switch {
	case before < 0:
		return "NAME or --permits comes before --, and COMMAND behind it"
	case before > 0 && names == 0:
		return "--permits NAME:N stands in place of NAME: leave " + sanitize.Word(args[0]) + " out"
	case before < names:
		return "NAME is missing before --"
	case before > names:
		return sanitize.Word(args[names]) + " stands before --: what comes behind it is COMMAND and its arguments"
	case len(args) == names:
		return "COMMAND is missing behind --"
	}
	return ""
}

// register adds the flags.
func (o *runOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.wait, "wait", 0, "give up when the lock is not free within this time (default: wait for ever)")
	f.BoolVar(&o.try, "try", false, "give up at once when the lock is held")
	f.BoolVar(&o.fair, "fair", false, "take the fair lock of this name: waiters are served in the order of arrival, as with getFairLock in Java")
	f.BoolVar(&o.fenced, "fenced", false, "take the lock with a fencing token, as with getFencedLock in Java: COMMAND finds it in REDLATCH_TOKEN")
	f.BoolVar(&o.read, "read", false, "take the read/write lock of this name as a reader: several hold it together, as with getReadWriteLock in Java")
	f.BoolVar(&o.write, "write", false, "take the read/write lock of this name as the writer, alone")
	f.StringVar(&o.permits, "permits", "", "in place of a lock, take one of the N permits of the semaphore NAME, as with getPermitExpirableSemaphore in Java: N commands run at a time, on all machines together")
	f.DurationVar(&o.lease, "lease", 0, "hold the lock for this long at most; COMMAND is ended before it is over")
	f.DurationVar(&o.watchdog, "watchdog", defaultLease,
		"renewed lease, when there is no --lease: how long the lock stays when this machine dies; equal to lockWatchdogTimeout in Java")
	f.DurationVar(&o.maxHold, "max-hold", 0, "end COMMAND when it has held the lock for this long, however well the lease is renewed")
	f.DurationVar(&o.atLeast, "at-least", 0, "keep the lock for this long from when it was acquired, also when COMMAND is done sooner")
	f.StringVar(&o.onLost, "on-lost", onLostTerm, "what becomes of COMMAND when the lock is lost: term, kill or ignore")
	f.IntVar(&o.conflict, "conflict-exit-code", codeConflict, "exit code when the lock was not acquired")
	cli.CompleteValues(cmd, "on-lost", onLostTerm, onLostKill, onLostIgnore)
}

// check refuses flags that make no sense.
func (o *runOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case o.try && o.bounded:
		return cli.Errorf(runner.CodeFailed, "--try and --wait contradict each other")
	case o.read && o.write, (o.read || o.write) && (o.fair || o.fenced):
		return cli.Errorf(runner.CodeFailed, "--read, --write and --fair or --fenced contradict each other: a name is that of one kind of lock")
	case changed("lease") && changed("watchdog"):
		return cli.Errorf(runner.CodeFailed, "--lease and --watchdog contradict each other")
	case changed("lease") && o.lease < time.Millisecond:
		return cli.Errorf(runner.CodeFailed, "--lease must be at least 1ms")
	case o.watchdog < minRenewed:
		return cli.Errorf(runner.CodeFailed, "--watchdog must be at least %v", minRenewed)
	case max(o.lease, o.watchdog) > limits.Max:
		return cli.Errorf(runner.CodeFailed, "--lease and --watchdog must be at most %v", limits.Max)
	case o.wait != 0 && o.wait < time.Millisecond:
		return cli.Errorf(runner.CodeFailed, "--wait must be 0 or at least 1ms")
	case changed("max-hold") && o.maxHold < time.Millisecond:
		return cli.Errorf(runner.CodeFailed, "--max-hold must be at least 1ms")
	case changed("lease") && changed("max-hold"):
		return cli.Errorf(runner.CodeFailed, "--lease and --max-hold contradict each other: a lease of its own is a maximum, too")
	}
	if changed("permits") {
		if err := o.checkPermits(changed); err != nil {
			return err
		}
	}
	return o.checkAtLeast(changed)
}

// checkAtLeast is check for the rest.
func (o *runOptions) checkAtLeast(changed func(string) bool) error {
	_, known := onLost[o.onLost]
	switch {
	case !known:
		return cli.Errorf(runner.CodeFailed, "--on-lost must be term, kill or ignore")
	case o.onLost == onLostIgnore && changed("max-hold"):
		return cli.Errorf(runner.CodeFailed, "--max-hold and --on-lost ignore contradict each other")
	case o.atLeast < 0:
		return cli.Errorf(runner.CodeFailed, "--at-least must not be negative")
	case changed("lease") && changed("at-least"):
		return cli.Errorf(runner.CodeFailed, "--lease and --at-least contradict each other: use --max-hold to bound COMMAND")
	case changed("max-hold") && o.atLeast > o.maxHold:
		return cli.Errorf(runner.CodeFailed, "--at-least is longer than --max-hold")
	case o.conflict < 0 || o.conflict > maxExitStatus:
		return cli.Errorf(runner.CodeFailed, "--conflict-exit-code must be from 0 to %d", maxExitStatus)
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
	held, err := o.acquire(ctx, name, signals)
	if err != nil {
		return err
	}
	// Also finishes, for a moment, what an Unlock without an answer left open.
	defer func() { _ = held.client.Close() }()
	proc, err := runner.Start(path, argv, runner.Environ(held.environment()...))
	if err != nil {
		_ = held.hold.Unlock() // the lock was not used: its lease frees it at worst
		return notRun(err)
	}
	end := runner.Supervise(held.hold.Context(ctx), proc, signals,
		runner.Policy{OnLoss: onLost[o.onLost], Grace: runner.Grace(o.margin())})
	over := held.hold.Err()
	return o.finish(name, end, over, o.giveUp(ctx, held, signals))
}

// finish makes the exit code of how the command, its hold and the unlocking went.
func (o *runOptions) finish(name string, end runner.End, over, unlocked error) error {
	lost := end.Lost || errors.Is(unlocked, redlatch.ErrLost)
	switch {
	case end.Lost && errors.Is(over, redlatch.ErrMaxHold):
		return cli.Errorf(runner.CodeFailed, "lock %q was held for %v, which is the most by --max-hold: the command was ended", name, o.maxHold)
	case lost && o.onLost == onLostIgnore:
		output.Messagef(os.Stderr, "warning: lock %q was lost while the command ran, which went on without it: %s", name, o.lossOf(over, unlocked))
	case lost:
		return cli.Errorf(runner.CodeFailed, "lock %q was lost while the command ran: %s", name, o.lossOf(over, unlocked))
	case errors.Is(unlocked, errUntold):
		output.Messagef(os.Stderr, "lock %q was freed, but %v", name, unlocked)
	case unlocked != nil && o.atLeast > 0:
		output.Messagef(os.Stderr, "warning: lock %q: %s", name, sanitize.WithoutPrefix(connect.Reason(unlocked)))
	case unlocked != nil:
		// The command had the lock to its end, which is what its user needs to know.
		output.Messagef(os.Stderr, "lock %q could not be freed and is left to its lease: %s", name, sanitize.WithoutPrefix(connect.Reason(unlocked)))
	}
	if end.Code != 0 {
		return &cli.ExitError{Code: end.Code}
	}
	return nil
}

// lossOf says why the lock was lost, by how its hold ended and how the unlocking went.
func (o *runOptions) lossOf(over, unlocked error) string {
	var why redlatch.Loss
	switch errs := errors.Join(over, unlocked); {
	case !errors.As(errs, &why):
		return errs.Error()
	case why == redlatch.LossLeaseOver:
		return fmt.Sprintf("its lease of %v was over", o.lease)
	}
	return string(why)
}

func notRun(err error) error {
	var failed *runner.Error
	if errors.As(err, &failed) {
		return &cli.ExitError{Code: failed.Code, Err: err}
	}
	return &cli.ExitError{Code: runner.CodeFailed, Err: err}
}

// held is a lock that was taken.
type held struct {
	srv    *connect.Server
	client *redlatch.Client
	lock   locker
	hold   *rlock.Hold
	since  time.Time // at this moment it was held
}

// acquire connects and takes the lock. A signal ends the waiting.
func (o *runOptions) acquire(ctx context.Context, name string, signals <-chan os.Signal) (*held, error) {
	ctx, caught := cancelOn(ctx, signals)
	h, err := o.open(ctx, name)
	sig := caught()
	if sig == nil {
		return h, err
	}
	if err == nil {
		_ = h.hold.Unlock() // the signal is what counts; the lease frees it at worst
		_ = h.client.Close()
	}
	return nil, &cli.ExitError{Code: cli.SignalCode(sig)}
}

// open connects and takes the lock. Its errors have their exit codes.
func (o *runOptions) open(ctx context.Context, name string) (*held, error) {
	if err := limits.Name(name); err != nil {
		return nil, &cli.ExitError{Code: runner.CodeFailed, Err: err}
	}
	srv, err := o.Server()
	if err != nil {
		return nil, &cli.ExitError{Code: runner.CodeFailed, Err: err}
	}
	connecting, connected := o.connecting(ctx)
	client, err := srv.Open(connecting,
		redlatch.WithWatchdogTimeout(o.watchdog), redlatch.WithLossMargin(o.margin().Truncate(time.Millisecond)))
	connected()
	if err != nil {
		return nil, &cli.ExitError{Code: runner.CodeFailed, Err: err}
	}
	lock, hold, err := o.lockOrPermit(ctx, srv, client, name)
	if err != nil {
		_ = client.Close() // the first error tells more
		return nil, o.notTaken(ctx, srv, name, err)
	}
	return &held{srv: srv, client: client, lock: lock, hold: hold, since: time.Now()}, nil
}

func (o *runOptions) take(ctx context.Context, lock locker) (*rlock.Hold, error) {
	var opts []rlock.Option
	if o.lease > 0 {
		opts = append(opts, rlock.WithLease(o.lease))
	}
	if o.maxHold > 0 {
		opts = append(opts, rlock.WithMaxHold(o.maxHold))
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
func (o *runOptions) notTaken(ctx context.Context, srv *connect.Server, name string, err error) error {
	var at *redlatch.LockError
	var other *transport.ServerError
	var odd *inspect.NotLock
	var replica *connect.OnReplica
	if o.permits != "" {
		if refused := o.noPermit(err); refused != nil {
			return refused
		}
	}
	switch {
	case errors.As(err, &odd), errors.As(err, &replica):
		return &cli.ExitError{Code: runner.CodeFailed, Err: err}
	case errors.Is(err, redlatch.ErrNotAcquired) && errors.As(err, &at) && at.TTL > 0:
		return cli.Errorf(o.conflict, "lock %q is held by another owner, for %v if it is not renewed",
			name, at.TTL.Round(100*time.Millisecond))
	case errors.Is(err, redlatch.ErrNotAcquired) && at != nil && at.TTL == redlatch.NoTTL:
		return cli.Errorf(o.conflict, "lock %q is held by another owner, whose lease never ends: it stays until it is released", name)
	case errors.Is(err, redlatch.ErrNotAcquired) && o.fair && at != nil && at.Holder.IsZero():
		return cli.Errorf(o.conflict, "lock %q is free, but others are queued for it", name)
	case errors.Is(err, redlatch.ErrNotAcquired):
		return cli.Errorf(o.conflict, "lock %q is held by another owner", name)
	case errors.Is(err, rfencedlock.ErrCounter):
		return cli.Errorf(runner.CodeFailed, "lock %q: its token counter cannot be raised: the key %q must hold a number from 0 on",
			name, codec.TokenKey(name))
	case errors.Is(err, redlatch.ErrWrongType) && (o.read || o.write):
		return cli.Errorf(runner.CodeFailed, "lock %q: the key holds something that is no read/write lock, such as a plain lock of this name", name)
	case errors.Is(err, redlatch.ErrWrongType) && !errors.As(err, &other):
		return &cli.ExitError{Code: runner.CodeFailed, Err: err} // a hash of another program, which it names
	case errors.Is(err, redlatch.ErrWrongType):
		return &cli.ExitError{Code: runner.CodeFailed, Err: inspect.WrongType(ctx, srv, name)}
	case connect.Denied(err):
		return cli.Errorf(runner.CodeFailed, "Redis at %s refuses: %s", srv, o.denied(ctx, srv, name, err))
	case errors.Is(err, redlatch.ErrNotSent), errors.Is(err, redlatch.ErrUncertain), errors.As(err, &other):
		return &cli.ExitError{Code: runner.CodeFailed, Err: srv.Problem(err)}
	}
	return &cli.ExitError{Code: runner.CodeFailed, Err: err}
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
