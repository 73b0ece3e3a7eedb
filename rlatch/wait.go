package rlatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// ErrNotOpen says that a latch was closed when the wait for it ended.
var ErrNotOpen = errors.New("redlatch: latch not open")

// Wait returns nil as soon as the latch is open, at once if it is so already, as Redisson's
// await. It asks before and after it has subscribed, at each message, after each time in which
// messages may have been missed, and once each poll cap (redlatch.WithPollCap). Once it waits
// it rides out a Redis that is away. It counts among the waiters of redlatch.WithMaxWaiters, and
// costs no goroutine.
//
// Errors: [ErrNotOpen] with ctx's error when ctx ended the wait, or when as many wait as may;
// redlatch.ErrNotSent when ctx had ended before, or when Redis could not be reached for one
// command timeout at the beginning; ErrClosed; ErrWrongType; ErrInvalid; or a
// *transport.ServerError. Each question is one GET.
func (l *Latch) Wait(ctx context.Context) error {
	engine.NeedContext(ctx)
	return l.wrap("wait", l.wait(ctx))
}

func (l *Latch) wait(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := l.engine.Enter(); err != nil {
		return err
	}
	defer l.engine.Leave()
	l.engine.Announce()
	a := acquire.Acquisition{Engine: l.engine, Kind: l.kind, Lock: l.name, Claims: passer{}, Began: time.Now()}
	err := a.Run(ctx, gate{})
	lost := errors.Is(err, engine.ErrUncertain) && ctx.Err() != nil // a question, which changes nothing
	switch {
	case !lost && !errors.Is(err, engine.ErrNotAcquired):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotOpen, engine.EndOf(ctx))
	}
	return fmt.Errorf("%w: as many callers wait as WithMaxWaiters allows", ErrNotOpen)
}

// kind is a latch as the wait loop sees it. It is safe for concurrent use.
type kind struct{ key, channel string }

func (kind) Name() string                                    { return "latch" }
func (k kind) Key() string                                   { return k.key }
func (k kind) Channel(any) string                            { return k.channel }
func (k kind) Acquire(c *transport.Call, _ *acquire.Request) { k.get(c) }

// Decode is part of acquire.Waitable. How long a count will last is not known.
func (k kind) Decode(answer any) (acquire.Outcome, error) {
	n, err := k.count(answer)
	return acquire.Outcome{Granted: n <= 0, TTL: reply.NoTTL}, err
}

func (k kind) get(c *transport.Call) {
	c.Command, c.NumKeys = "GET", 1
	c.Args = append(c.Args, k.key)
}

// count reads the reply of GET.
func (kind) count(answer any) (int64, error) {
	n, err := reply.Count(answer)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return n, nil
}

// gate is how the callers of one process wait for a latch: each asks, and all go when it opens.
type gate struct{}

func (gate) Waiter(a *acquire.Acquisition) acquire.Waiter {
	return &waiter{acquire.Alone(), a}
}

// waiter is a caller that waits.
type waiter struct {
	acquire.Waiter
	acquisition *acquire.Acquisition
}

// Unanswered is part of acquire.Waiter: a question whose answer was lost is asked again.
func (w *waiter) Unanswered(err error) {
	if errors.Is(err, engine.ErrUncertain) {
		w.acquisition.Answered = true
	}
}

// passer is a caller that passes a latch: there is nothing that it holds then, and nothing to
// give back.
type passer struct{ acquire.BareClaim }

var (
	_ acquire.Claims = passer{}
	_ acquire.Claim  = passer{}

	question acquire.Request // that of all callers
)

func (p passer) Claim(acquire.Reusable) acquire.Claim { return p }
func (passer) Request() *acquire.Request              { return &question }
func (passer) Grant(time.Time, acquire.Outcome) error { return nil }
func (passer) Disown()                                {}
func (passer) InDoubt() *engine.InDoubt               { return nil }
func (passer) Late(any, error)                        {}
