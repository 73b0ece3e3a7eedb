package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// giveUp releases the lock, or keeps it for --at-least: it waits if the rest is at most one lease
// and signals is not nil, and otherwise leaves the lock with the rest as its lease.
func (o *lockFlags) giveUp(ctx context.Context, h *acquired, signals <-chan os.Signal) error {
	left := o.atLeast - time.Since(h.since)
	if left <= 0 || h.hold.Err() != nil {
		return o.unlock(ctx, h)
	}
	keep := h.leave
	if signals != nil && left <= o.watchdog {
		keep = func(ctx context.Context, left time.Duration) error { return o.await(ctx, h, left, signals) }
	}
	err := keep(ctx, left)
	switch {
	case errors.Is(err, errUntold):
		return err
	case err != nil && !errors.Is(err, redlatch.ErrMaxHold):
		// A loss here is not the command's.
		return fmt.Errorf("it may be free before --at-least is over: %s", o.why(ctx, h, err))
	}
	return nil
}

// errUntold means that the lock was released but its waiters were not notified.
var errUntold = errors.New("its waiters were not notified, and ask for it when they next poll")

func (o *lockFlags) unlock(ctx context.Context, h *acquired) error {
	err := h.hold.Unlock()
	switch {
	case !connect.Denied(err):
		return err
	case errors.Is(err, redlatch.ErrNotNotified):
		return fmt.Errorf("%w: %s", errUntold, o.why(ctx, h, err))
	}
	return errors.New(o.why(ctx, h, err))
}

// await keeps the lock renewed for the time left and releases it: its lease alone might last
// longer. On a signal it leaves the lock with the rest as its lease.
func (o *lockFlags) await(ctx context.Context, h *acquired, left time.Duration, signals <-chan os.Signal) error {
	began := time.Now()
	over := time.NewTimer(left)
	defer over.Stop()
	lost := h.hold.Context(ctx).Done()
	for {
		select {
		case <-over.C:
			return o.unlock(ctx, h)
		case <-signals:
			return h.leave(ctx, max(left-time.Since(began), time.Millisecond))
		case <-lost:
			if !errors.Is(h.hold.Err(), redlatch.ErrMaxHold) {
				return h.hold.Err()
			}
			lost = nil // MaxHold is as long, and began a moment earlier
		}
	}
}

// leave leaves the lock with a fixed lease.
func (h *acquired) leave(ctx context.Context, left time.Duration) error {
	owner, err := h.hold.HandOver()
	if err != nil {
		_ = h.hold.LetExpire() // the first error says more
		return err
	}
	kept, err := h.lock.Resume(ctx, owner, rlock.WithLease(left))
	if err != nil {
		return err
	}
	return kept.LetExpire()
}

// lossOf says why the lock was lost, given the hold's error and that of the unlock.
func (o *lockFlags) lossOf(over, unlocked error) string {
	var why redlatch.Loss
	var refusal *transport.ServerError
	switch errs := errors.Join(over, unlocked); {
	case !errors.As(errs, &why):
		return errs.Error()
	case why == redlatch.LossLeaseOver:
		return fmt.Sprintf("its lease of %v was over", o.lease)
	case why == redlatch.LossNotRenewed && errors.As(errs, &refusal):
		return string(why) + ": the server refused to renew it: " + connect.Reason(refusal)
	}
	return string(why)
}

// notFreed describes a failed unlock of a lock that was not lost, "" for none.
func (o *lockFlags) notFreed(name string, unlocked error) string {
	switch {
	case unlocked == nil:
		return ""
	case errors.Is(unlocked, errUntold):
		return fmt.Sprintf("lock %q was freed, but %v", name, unlocked)
	case o.atLeast > 0:
		return fmt.Sprintf("warning: lock %q: %s", name, sanitize.WithoutPrefix(connect.Reason(unlocked)))
	}
	return fmt.Sprintf("lock %q could not be freed and is left to its lease: %s", name, sanitize.WithoutPrefix(connect.ReasonAt(unlocked)))
}
