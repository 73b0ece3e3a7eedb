package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rlock"
)

// giveUp frees the lock, or sees to it that it stays for as long as --at-least says.
func (o *runOptions) giveUp(ctx context.Context, h *held, signals <-chan os.Signal) error {
	left := o.atLeast - time.Since(h.since)
	if left <= 0 || h.hold.Err() != nil {
		err := h.hold.Unlock()
		if connect.Denied(err) {
			return errors.New(o.why(ctx, h, err))
		}
		return err
	}
	keep := h.leave
	if left <= o.watchdog {
		keep = func(ctx context.Context, left time.Duration) error { return h.await(ctx, left, signals) }
	}
	if err := keep(ctx, left); err != nil && !errors.Is(err, redlatch.ErrMaxHold) {
		// A loss at this time is none of the command's.
		return fmt.Errorf("it may be free before --at-least is over: %s", o.why(ctx, h, err))
	}
	return nil
}

// await keeps the lock, renewed, for the time that is left, and frees it then: left
// to its lease, it would stay for up to the whole of it. A signal leaves it to a lease
// of what is left.
func (h *held) await(ctx context.Context, left time.Duration, signals <-chan os.Signal) error {
	began := time.Now()
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case <-over.C:
		return h.hold.Unlock()
	case <-signals:
		return h.leave(ctx, max(left-time.Since(began), time.Millisecond))
	case <-h.hold.Context(ctx).Done():
		return h.hold.Err()
	}
}

// leave leaves the lock to a lease of the time that is left.
func (h *held) leave(ctx context.Context, left time.Duration) error {
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
