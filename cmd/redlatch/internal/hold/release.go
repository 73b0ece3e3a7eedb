package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// giveUp releases the lock, or keeps it for --at-least. If the remaining time is at most one lease
// and signals is not nil, it waits and then releases the lock, so that waiters are notified.
// Otherwise it sets the lease to the remaining time.
func (h *held) giveUp(ctx context.Context, signals <-chan os.Signal) (err error) {
	switch left := h.atLeast - time.Since(h.since); {
	case left <= 0 || h.hold.Err() != nil:
		return h.unlock(ctx)
	case signals != nil && left <= h.watchdog:
		err = h.await(ctx, left, signals)
	default:
		err = h.leave(ctx, left)
	}
	switch {
	case errors.Is(err, errUntold):
		return err
	case err != nil && !errors.Is(err, redlatch.ErrMaxHold):
		return fmt.Errorf("it may become free before --at-least expires: %s", h.why(ctx, err))
	}
	return nil
}

var errUntold = errors.New("its waiters were not notified and will find it free at their next poll")

func (h *held) unlock(ctx context.Context) error {
	err := h.hold.Unlock()
	switch {
	case !connect.Denied(err):
		return err
	case errors.Is(err, redlatch.ErrNotNotified):
		return fmt.Errorf("%w: %s", errUntold, h.why(ctx, err))
	}
	return errors.New(h.why(ctx, err))
}

// await releases the lock after the time left. If a stopping signal arrives first, it sets the lease to the remaining time.
func (h *held) await(ctx context.Context, left time.Duration, signals <-chan os.Signal) error {
	began := time.Now()
	over := time.NewTimer(left)
	defer over.Stop()
	lost := h.lost.Done()
	for {
		select {
		case <-over.C:
			return h.unlock(ctx)
		case sig := <-signals:
			if slices.Contains(stopping, sig) {
				return h.leave(ctx, left-time.Since(began))
			}
		case <-lost:
			if !errors.Is(h.hold.Err(), redlatch.ErrMaxHold) {
				return h.hold.Err()
			}
			lost = nil // MaxHold is as long as --at-least and has just expired
		}
	}
}

// leave acquires the lock again with the new lease, even if it is shorter. This inner hold remains
// when the renewed hold is released.
func (h *held) leave(ctx context.Context, left time.Duration) error {
	kept, err := h.lock.TryLock(h.hold.Context(ctx), rlock.WithLease(max(left, time.Millisecond)))
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired) && left <= h.watchdog: // the lease expired before the reply arrived
		time.Sleep(h.atLeast - time.Since(h.since))
		return h.unlock(ctx)
	case err != nil:
		_ = h.hold.LetExpire() // the first error is more useful
		return err
	}
	if err := h.hold.Unlock(); err != nil {
		return err
	}
	return kept.LetExpire()
}

func (o *lockFlags) lossOf(over, unlocked error) string {
	var why redlatch.Loss
	var refusal *transport.ServerError
	switch errs := errors.Join(over, unlocked); {
	case !errors.As(errs, &why):
		return errs.Error()
	case why == redlatch.LossLeaseOver:
		return fmt.Sprintf("its lease of %v expired", o.lease)
	case why == redlatch.LossNotRenewed && errors.As(errs, &refusal):
		return string(why) + ": the server rejected its renewal: " + connect.Reason(refusal)
	}
	return string(why)
}

func (o *lockFlags) notFreed(name string, unlocked error) string {
	switch {
	case unlocked == nil:
		return ""
	case errors.Is(unlocked, errUntold):
		return fmt.Sprintf("lock %q was released, but %v", name, unlocked)
	case o.atLeast > 0:
		return fmt.Sprintf("warning: lock %q: %s", name, sanitize.WithoutPrefix(connect.Reason(unlocked)))
	}
	return fmt.Sprintf("cannot release lock %q; its lease will expire: %s", name, sanitize.WithoutPrefix(connect.ReasonAt(unlocked)))
}

const releaseWait = time.Minute

var (
	errEnded  = errors.New("this owner holds no lock: it was already released, or ended by a signal or with its process")
	errKilled = errors.New("the process that held it was killed: the lock remains until its lease expires")
	errOther  = errors.New("the hold belongs to another owner")
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
		Short:   "Release the lock of hold -s",
		Long:    releaseHelp,
		Example: releaseExamples,

		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       cli.RunFails,
		Args:              cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.UntilSignal(cmd.Context(), func(ctx context.Context) error { return o.release(ctx, cmd, args) })
		},
	}
	cmd.Flags().StringVar(&o.owner, "owner", "", "owner or permit of the hold, instead of the one in the environment")
	cmd.Flags().DurationVar(&o.wait, "wait", releaseWait, "give up if the lock is not released within this time")
	return cmd
}

func (o *releaseFlags) release(ctx context.Context, cmd *cobra.Command, args []string) error {
	if o.wait < time.Millisecond {
		return errors.New("--wait must be at least 1ms")
	}
	path, owner, err := o.which(cmd.Flags().Changed("owner"), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	got, err := ask(ctx, path, owner)
	switch {
	case errors.Is(err, errEnded), errors.Is(err, errKilled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the lock was not released within %v", o.wait)
	case err != nil:
		return fmt.Errorf("query the holding process: %w", err)
	}
	return got.exit()
}

func (o *releaseFlags) which(named bool, args []string) (path, owner string, err error) {
	if named {
		if len(args) > 0 {
			return "", "", fmt.Errorf("--owner replaces NAME: remove %s", sanitize.Word(args[0]))
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
		return "", "", errors.New(`no hold in the environment: run eval "$(redlatch hold -s NAME)" first, or use --owner`)
	case len(args) > 0 && args[0] == "":
		return "", "", errors.New("NAME is empty")
	case len(args) > 0 && args[0] != lock:
		return "", "", fmt.Errorf("the environment belongs to lock %s, not %s: use --owner for another hold", sanitize.Word(lock), sanitize.Word(args[0]))
	}
	return path, owner, nil
}
