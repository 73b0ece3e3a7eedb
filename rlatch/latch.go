// Package rlatch provides Redisson's count-down latch, RCountDownLatch: callers wait until others have counted
// down as often as was set.
//
//	       TrySet(n)                    CountDown
//	open ─────────────▶ closed(n) ─────────────────▶ closed(n-1)
//	 ▲                     │  ▲                          │
//	 │ CountDown to 0      │  └──────────────────────────┤
//	 ├─────────────────────┴─────────────────────────────┤
//	 │ Delete, or a TTL that was set by hand             │
//	 └───────────────────────────────────────────────────┘
//
// A latch that was never set is open, like one whose count is 0: both are a key that does not exist. Set the
// count before the first caller waits.
//
// A waiter checks the count before and after it subscribes, at each message, after a gap, and each poll cap
// (redlatch.WithPollCap). So a false message costs one GET, and a missed message, a deleted key or an expired
// one delays the waiter by at most one poll cap; Redisson's waiters spin or sleep forever.
//
// # One latch per round
//
// A waiter may miss that a latch was open if it is set again immediately. Use a new name for each round, such
// as "import:2026-11-24".
//
// # Crashes
//
// The count has no owners. A worker that dies before it has counted down keeps the latch closed forever, and a
// CountDown whose reply is lost, redlatch.ErrUncertain, may have counted or not, and is not retried. Give
// waiters a deadline. If each worker's part must count exactly once, keep a set of finished parts instead of
// a number.
package rlatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Latch is a named count-down latch. It is safe for concurrent use. Errors are *redlatch.LockError.
type Latch struct {
	engine  *engine.Engine
	name    string
	err     error // of an invalid name
	kind    kind
	scripts luasrc.Latch
}

// New returns the latch called name, Redisson's getCountDownLatch. It sends nothing. With an invalid name
// every call returns redlatch.ErrInvalid. In a cluster a name with a hash tag, such as "{orders}:42", is
// invalid: Redisson puts braces around the whole name for the channel, which is in another slot then, and
// its scripts also fail.
func New(client *redlatch.Client, name string) *Latch {
	e := engine.EngineOf(client)
	key, err := e.Map(name)
	channel := protocol.CountDownChannel(key)
	if slots, ok := e.Transport.(transport.Slotter); ok && err == nil && slots.Slot(key) != slots.Slot(channel) {
		err = fmt.Errorf("%w: the latch's name %s does not work in a cluster: its channel, %s, is in another slot; take a name without braces",
			redlatch.ErrInvalid, limits.Quote(key), limits.Quote(channel))
	}
	return &Latch{
		engine: e, name: name, err: err, kind: kind{key, channel},
		scripts: luasrc.Latch{Key: key, Channel: channel, Publish: e.Publish()},
	}
}

// Name returns the latch's name.
func (l *Latch) Name() string { return l.name }

// TrySet sets the count to n, above 0, if the latch is open, and reports whether it did, as Redisson's
// trySetCount. Any other n gives redlatch.ErrInvalid; Redisson would store it, and never announce such a
// latch as open. After redlatch.ErrUncertain the count may be set. It sends one EVALSHA.
func (l *Latch) TrySet(ctx context.Context, n int64) (bool, error) {
	if n <= 0 {
		engine.NeedContext(ctx)
		return false, l.wrap("set", fmt.Errorf("%w: a count of %d is not above 0", redlatch.ErrInvalid, n))
	}
	return ask(ctx, l, "set", func(c *transport.Call) { l.scripts.Set(c, n) }, reply.Exists)
}

// CountDown lowers the count by one, which opens the latch at 0, as Redisson's countDown. An open latch stays
// open, without an error. If the reply is lost or ctx ends first, CountDown returns redlatch.ErrUncertain: it
// may have counted, or may yet, and another call can count twice. It is retried only if it certainly did not
// run. It sends one EVALSHA.
func (l *Latch) CountDown(ctx context.Context) error {
	_, err := ask(ctx, l, "count-down", l.scripts.CountDown, func(answer any) (any, error) { return answer, nil })
	return err
}

// Count returns the count, 0 for an open latch, as Redisson's getCount, from the master. It sends GET.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	n, err := ask(ctx, l, "count", l.kind.get, l.kind.count)
	return max(n, 0), err
}

// Delete deletes the count, which opens the latch, and reports whether there was one, as Redisson's delete.
// Callers of Wait return; Redisson's keep waiting, since its message says that the latch has closed. A key
// that is not a count stays, with redlatch.ErrWrongType. It sends one EVALSHA.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	return ask(ctx, l, "delete", l.scripts.Delete, reply.Exists)
}

// ask runs a call and decodes its reply.
func ask[T any](ctx context.Context, l *Latch, op string, fill func(*transport.Call), decode func(any) (T, error)) (result T, err error) {
	engine.NeedContext(ctx)
	if err = acquire.Check(ctx, l.err); err == nil {
		var answer any
		if answer, err = acquire.Ask(ctx, l.engine, l.kind, true, fill); err == nil {
			result, err = decode(answer)
		}
	}
	return result, l.wrap(op, err)
}

// wrap adds the operation and the name to an error. It returns nil for nil.
func (l *Latch) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.name, Err: explain(err)}
}

// explain adds redlatch.ErrWrongType to the errors of a key that is not a latch.
func explain(err error) error {
	var answer *transport.ServerError
	if errors.As(err, &answer) && strings.Contains(answer.Text, "not an integer") {
		return fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return engine.Explain(err)
}

// ErrNotOpen means that the latch was closed when the wait ended.
var ErrNotOpen = errors.New("redlatch: latch not open")

// Wait returns nil as soon as the latch is open, as Redisson's await. It sends GET when the package
// documentation says. Once it waits it outlasts an outage of Redis. It counts as a waiter for
// redlatch.WithMaxWaiters, and needs no goroutine.
//
// Errors: [ErrNotOpen] with ctx's error if ctx ended the wait, or if WithMaxWaiters is reached;
// redlatch.ErrNotSent if ctx had already ended, or Redis was not reached within one command timeout at first;
// ErrClosed; ErrWrongType; ErrInvalid; or a *transport.ServerError.
func (l *Latch) Wait(ctx context.Context) error {
	engine.NeedContext(ctx)
	return l.wrap("wait", l.wait(ctx))
}

func (l *Latch) wait(ctx context.Context) error {
	if err := acquire.Check(ctx, l.err); err != nil {
		return err
	}
	if err := l.engine.Enter(); err != nil {
		return err
	}
	defer l.engine.Leave()
	l.engine.Announce()
	a := acquire.Acquisition{Engine: l.engine, Kind: l.kind, Lock: l.name, Claims: passer{}, Began: time.Now()}
	err := a.Run(ctx, gate{})
	lost := errors.Is(err, engine.ErrUncertain) && ctx.Err() != nil // GET changes nothing
	switch {
	case !lost && !errors.Is(err, engine.ErrNotAcquired):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotOpen, engine.EndOf(ctx))
	}
	return fmt.Errorf("%w: as many callers wait as WithMaxWaiters allows", ErrNotOpen)
}

// kind is a latch for the wait loop.
type kind struct{ key, channel string }

func (kind) Name() string                                    { return "latch" }
func (k kind) Key() string                                   { return k.key }
func (k kind) Channel(any) string                            { return k.channel }
func (k kind) Acquire(c *transport.Call, _ *acquire.Request) { k.get(c) }

// Decode: how long a count will last is not known.
func (k kind) Decode(answer any) (acquire.Outcome, error) {
	n, err := k.count(answer)
	return acquire.Outcome{Granted: n <= 0, TTL: reply.NoTTL}, err
}

func (k kind) get(c *transport.Call) {
	c.Command, c.NumKeys = "GET", 1
	c.Args = append(c.Args, k.key)
}

// count decodes the reply of GET.
func (kind) count(answer any) (int64, error) {
	n, err := reply.Count(answer)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return n, nil
}

// gate is the strategy: each caller polls.
type gate struct{}

func (gate) Waiter(a *acquire.Acquisition) acquire.Waiter {
	return &waiter{acquire.Alone(), a}
}

type waiter struct {
	acquire.Waiter
	acquisition *acquire.Acquisition
}

// Unanswered: a GET whose reply was lost is retried.
func (w *waiter) Unanswered(err error) {
	if errors.Is(err, engine.ErrUncertain) {
		w.acquisition.Answered = true
	}
}

// passer is the claim of a caller, which holds nothing when the latch is open.
type passer struct{ acquire.BareClaim }

var (
	_ acquire.Claims = passer{}
	_ acquire.Claim  = passer{}

	question acquire.Request // of all callers
)

func (p passer) Claim(acquire.Reusable) acquire.Claim { return p }
func (passer) Request() *acquire.Request              { return &question }
func (passer) Grant(time.Time, acquire.Outcome) error { return nil }
func (passer) Disown()                                {}
func (passer) Late(any, error) *engine.InDoubt        { return nil }
