package holding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// GiveUp frees the lock, or sees to it that it stays for as long as AtLeast says: it waits until
// then when that is within one lease, or leaves the lock to a lease of what remains, at once when
// signals is nil.
func (o *Options) GiveUp(ctx context.Context, h *Held, signals <-chan os.Signal) error {
	left := o.AtLeast - time.Since(h.Since)
	if left <= 0 || h.Hold.Err() != nil {
		return o.unlock(ctx, h)
	}
	keep := h.leave
	if signals != nil && left <= o.Watchdog {
		keep = func(ctx context.Context, left time.Duration) error { return o.await(ctx, h, left, signals) }
	}
	err := keep(ctx, left)
	switch {
	case errors.Is(err, ErrUntold):
		return err
	case err != nil && !errors.Is(err, redlatch.ErrMaxHold):
		// A loss at this time is none of the command's.
		return fmt.Errorf("it may be free before --at-least is over: %s", o.why(ctx, h, err))
	}
	return nil
}

// ErrUntold means that the lock is free, but that its waiters were not notified.
var ErrUntold = errors.New("its waiters were not notified, and ask for it when they next poll")

// unlock frees the lock.
func (o *Options) unlock(ctx context.Context, h *Held) error {
	err := h.Hold.Unlock()
	switch {
	case !connect.Denied(err):
		return err
	case errors.Is(err, redlatch.ErrNotNotified):
		return fmt.Errorf("%w: %s", ErrUntold, o.why(ctx, h, err))
	}
	return errors.New(o.why(ctx, h, err))
}

// await keeps the lock, renewed, for the time that is left, and frees it then: left
// to its lease, it would stay for up to the whole of it. A signal leaves it to a lease
// of what is left.
func (o *Options) await(ctx context.Context, h *Held, left time.Duration, signals <-chan os.Signal) error {
	began := time.Now()
	over := time.NewTimer(left)
	defer over.Stop()
	lost := h.Hold.Context(ctx).Done()
	for {
		select {
		case <-over.C:
			return o.unlock(ctx, h)
		case <-signals:
			return h.leave(ctx, max(left-time.Since(began), time.Millisecond))
		case <-lost:
			if !errors.Is(h.Hold.Err(), redlatch.ErrMaxHold) {
				return h.Hold.Err()
			}
			lost = nil // MaxHold is as long, and began a moment before AtLeast
		}
	}
}

// leave leaves the lock to a lease of the time that is left.
func (h *Held) leave(ctx context.Context, left time.Duration) error {
	owner, err := h.Hold.HandOver()
	if err != nil {
		_ = h.Hold.LetExpire() // the first error tells more
		return err
	}
	kept, err := h.Lock.Resume(ctx, owner, rlock.WithLease(left))
	if err != nil {
		return err
	}
	return kept.LetExpire()
}

// LossOf says why the lock was lost, by how its hold ended and how the unlocking went.
func (o *Options) LossOf(over, unlocked error) string {
	var why redlatch.Loss
	var refusal *transport.ServerError
	switch errs := errors.Join(over, unlocked); {
	case !errors.As(errs, &why):
		return errs.Error()
	case why == redlatch.LossLeaseOver:
		return fmt.Sprintf("its lease of %v was over", o.Lease)
	case why == redlatch.LossNotRenewed && errors.As(errs, &refusal):
		return string(why) + ": the server refused to renew it: " + connect.Reason(refusal)
	}
	return string(why)
}
