// Package rlatch is Redisson's count-down latch, RCountDownLatch: callers wait until others have
// counted down as often as was set. [New] makes it.
//
//	       TrySet(n)                    CountDown
//	open ─────────────▶ closed(n) ─────────────────▶ closed(n-1)
//	 ▲                     │  ▲                          │
//	 │ CountDown to 0      │  └──────────────────────────┤
//	 ├─────────────────────┴─────────────────────────────┤
//	 │ Delete, or a time to live that was set by hand    │
//	 └───────────────────────────────────────────────────┘
//
// A latch that was never set is open, and so is one whose count is 0: on the server both are a
// key that does not exist. So set the count before the first caller waits.
//
// # The life of a wait
//
//	Wait ──ask──▶ open ──────────────────────────────────▶ nil
//	       │                                          ▲
//	       │ closed                                   │
//	       ▼                                          │
//	   subscribe (acknowledged)                       │
//	       │                                          │
//	       ▼                                          │
//	     ask ◀──────────────────────────┐             │
//	       │ └── open ──────────────────┼─────────────┘
//	       ▼                            │
//	   wait for the first of: message, gap, poll cap
//	       │ context, client closed
//	       ▼
//	   give up
//
// A message never says that the latch is open: it is a reason to ask. So a message that is false
// costs one question, where Redisson's waiters ask without a pause until the next message; and
// a message that is missed, a key that was deleted or one that has expired costs one poll cap
// (redlatch.WithPollCap), where Redisson's waiters sleep on for ever.
//
// # One latch for one round
//
// A waiter sees a latch that was set again at once as one that is still closed. Use a new name
// for each round, such as "import:2026-11-24", rather than the same latch again.
//
// # What a crash loses
//
// The count has no owners. A worker that dies before it has counted down keeps the latch closed
// for ever, and a CountDown whose reply is lost may have counted or not: it is
// redlatch.ErrUncertain, and is not repeated. Give waiters a deadline. Where each worker's part
// must count exactly once, keep a set of the parts that are done, and not a number.
package rlatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Latch is a count-down latch by name. It has no state of its own: any number of goroutines may
// use one Latch, and any number of Latches may be made for one name. Errors are
// *redlatch.LockError, which wrap what went wrong.
type Latch struct {
	engine  *engine.Engine
	name    string
	err     error // why the name cannot be used
	kind    kind
	scripts luasrc.Latch
}

// New returns the latch called name: Redisson's getCountDownLatch. It sends nothing. A name that
// no latch can have shows as redlatch.ErrInvalid in every call. In a cluster that is so of each
// name with a hash tag, such as "{orders}:42": Redisson puts braces around the whole name for the
// latch's channel, which is in another slot then, so that its scripts fail, too.
func New(client *redlatch.Client, name string) *Latch {
	e := engine.EngineOf(client)
	key, err := e.Map(name)
	channel := codec.CountDownChannel(key)
	if slots, ok := e.Transport.(transport.Slotter); ok && err == nil && slots.Slot(key) != slots.Slot(channel) {
		err = fmt.Errorf("%w: the latch's name %s does not work in a cluster: its channel, %s, is in another slot; take a name without braces",
			redlatch.ErrInvalid, limits.Quote(key), limits.Quote(channel))
	}
	return &Latch{
		engine: e, name: name, err: err, kind: kind{key, channel},
		scripts: luasrc.Latch{Key: key, Channel: channel, Publish: e.Publish()},
	}
}

// Name returns the name that the latch was made with. It sends nothing.
func (l *Latch) Name() string { return l.name }

// TrySet sets the count to n, above 0, if the latch is open, and reports whether it did, as
// Redisson's trySetCount. It returns false when there is a count already, and changes nothing
// then. Any other n gives redlatch.ErrInvalid, and nothing is sent: Redisson would store it, and
// never open such a latch by a message. Redlatch.ErrUncertain says that the reply was lost: the
// count may be set. It sends one EVALSHA.
func (l *Latch) TrySet(ctx context.Context, n int64) (bool, error) {
	engine.NeedContext(ctx)
	if n <= 0 {
		return false, l.wrap("set", fmt.Errorf("%w: a count of %d is not above 0", redlatch.ErrInvalid, n))
	}
	answer, err := l.ask(ctx, func(c *transport.Call) { l.scripts.Set(c, n) })
	if err != nil {
		return false, l.wrap("set", err)
	}
	set, err := reply.Exists(answer)
	return set, l.wrap("set", err)
}

// CountDown lowers the count by one, and opens the latch when that makes it 0, as Redisson's
// countDown. A latch that is open stays so, and no error says that it was. It is sent again only
// while it certainly did not run; redlatch.ErrUncertain says that the reply was lost, or that ctx
// ended before it came: it may have counted, or may yet. To call it again can count twice. It
// sends one EVALSHA.
func (l *Latch) CountDown(ctx context.Context) error {
	engine.NeedContext(ctx)
	_, err := l.ask(ctx, func(c *transport.Call) { l.scripts.CountDown(c) })
	return l.wrap("count-down", err)
}

// Count returns the count, 0 for a latch that is open, as Redisson's getCount, asked of the
// master. It sends GET.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	engine.NeedContext(ctx)
	answer, err := l.ask(ctx, l.kind.get)
	if err != nil {
		return 0, l.wrap("count", err)
	}
	n, err := l.kind.count(answer)
	return max(n, 0), l.wrap("count", err)
}

// Delete deletes the count, which opens the latch, and reports whether there was one, as
// Redisson's delete. Callers of Wait return; Redisson's go on waiting, since its message says
// that the latch has closed. A key that is no count is redlatch.ErrWrongType, and stays. It
// sends one EVALSHA.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	engine.NeedContext(ctx)
	answer, err := l.ask(ctx, func(c *transport.Call) { l.scripts.Delete(c) })
	if err != nil {
		return false, l.wrap("delete", err)
	}
	was, err := reply.Exists(answer)
	return was, l.wrap("delete", err)
}

// ask runs a call.
func (l *Latch) ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	if err := acquire.Check(ctx, l.err); err != nil {
		return nil, err
	}
	return acquire.Ask(ctx, l.engine, l.kind, true, fill)
}

// wrap makes an error say what was done to which latch. Nil stays nil.
func (l *Latch) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.name, Err: explain(err)}
}

// explain gives the errors of a key that is no latch a name of their own.
func explain(err error) error {
	var answer *transport.ServerError
	if errors.As(err, &answer) && strings.Contains(answer.Text, "not an integer") {
		return fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return engine.Explain(err)
}

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
