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

// giveUp frees the lock, or sees to it that it stays for as long as atLeast says: it waits until
// then when that is within one lease, or leaves the lock to a lease of what remains, at once when
// signals is nil.
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
		// A loss at this time is none of the command's.
		return fmt.Errorf("it may be free before --at-least is over: %s", o.why(ctx, h, err))
	}
	return nil
}

// errUntold means that the lock is free, but that its waiters were not notified.
var errUntold = errors.New("its waiters were not notified, and ask for it when they next poll")

// unlock frees the lock.
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

// await keeps the lock, renewed, for the time that is left, and frees it then: left
// to its lease, it would stay for up to the whole of it. A signal leaves it to a lease
// of what is left.
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
			lost = nil // MaxHold is as long, and began a moment before atLeast
		}
	}
}

// leave leaves the lock to a lease of the time that is left.
func (h *acquired) leave(ctx context.Context, left time.Duration) error {
	owner, err := h.hold.HandOver()
	if err != nil {
		_ = h.hold.LetExpire() // the first error tells more
		return err
	}
	kept, err := h.lock.Resume(ctx, owner, rlock.WithLease(left))
	if err != nil {
		return err
	}
	return kept.LetExpire()
}

// lossOf says why the lock was lost, by how its hold ended and how the unlocking went.
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

// notFreed says what there is to say of a lock that was not lost, "" if it was freed in order.
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
