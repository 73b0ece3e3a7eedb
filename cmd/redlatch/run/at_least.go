package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rlock"
)

// giveUp frees the lock, or sees to it that it stays for as long as --at-least says.
func (o *runOptions) giveUp(ctx context.Context, h *held, signals <-chan os.Signal) error {
	left := o.atLeast - time.Since(h.since)
	if left <= 0 || h.hold.Err() != nil {
		return o.unlock(ctx, h)
	}
	keep := h.leave
	if left <= o.watchdog {
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

// unlock frees the lock. The script of a release deletes the key before it publishes: where
// the user may not publish, the lock is free although the script fails.
func (o *runOptions) unlock(ctx context.Context, h *held) error {
	err := h.hold.Unlock()
	switch {
	case !connect.Denied(err):
		return err
	case h.isFree(ctx):
		return fmt.Errorf("%w: %s", errUntold, o.why(ctx, h, err))
	}
	return errors.New(o.why(ctx, h, err))
}

// isFree reports whether the server says that the owner does not hold the lock.
func (h *held) isFree(ctx context.Context) bool {
	c, err := h.srv.Dial(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // only read from
	for _, field := range []string{h.hold.Owner().String(), codec.WriterField(h.hold.Owner().String())} {
		if has, err := redis.Bool(c.Do("HEXISTS", h.lock.Name(), field)); err != nil || has {
			return false
		}
	}
	return true
}

// await keeps the lock, renewed, for the time that is left, and frees it then: left
// to its lease, it would stay for up to the whole of it. A signal leaves it to a lease
// of what is left.
func (o *runOptions) await(ctx context.Context, h *held, left time.Duration, signals <-chan os.Signal) error {
	began := time.Now()
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case <-over.C:
		return o.unlock(ctx, h)
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
