// Package rlatch provides Redisson's count-down latch, RCountDownLatch: callers wait until a count
// reaches 0.
//
//	imports := rlatch.New(client, "imports:2026-11-24")
//	_, err := imports.TrySetCount(ctx, 3) // before anyone waits
//	err = imports.CountDown(ctx)     // each of three workers
//	err = imports.Wait(ctx)          // any number of callers
//
// A latch that was never set is open. Use a new name for each round: a waiter can miss an open
// latch that is set again immediately.
//
// A worker that dies before CountDown keeps the latch closed, so give waiters a deadline.
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

// Latch is a named count-down latch. All methods are safe for concurrent use. Errors are of type
// *redlatch.LockError.
type Latch struct {
	engine  *engine.Engine
	name    string
	err     error // not nil if the name is invalid
	kind    kind
	scripts luasrc.Latch
}

// New returns the latch called name, like Redisson's getCountDownLatch. It sends nothing. If the name is invalid,
// every call returns redlatch.ErrInvalid. In a cluster, a name with a hash tag, such as "{orders}:42", is
// invalid, because its channel is in another slot; Redisson's scripts also fail.
func New(client *redlatch.Client, name string) *Latch {
	e := engine.EngineOf(client)
	key, err := e.Map(name)
	channel := protocol.CountDownChannel(key)
	if slots, ok := e.Transport.(transport.Slotter); ok && err == nil && slots.Slot(key) != slots.Slot(channel) {
		err = fmt.Errorf("%w: invalid name %s of a latch in a cluster: its channel %s is in another slot; use a name without braces",
			redlatch.ErrInvalid, limits.Quote(key), limits.Quote(channel))
	}
	return &Latch{
		engine: e, name: name, err: err, kind: kind{key, channel},
		scripts: luasrc.Latch{Key: key, Channel: channel, Publish: e.Publish()},
	}
}

// Name returns the latch's name.
func (l *Latch) Name() string { return l.name }

// TrySetCount sets the count to n, which must be at least 1, if the latch is open. It reports whether
// it did, like Redisson's trySetCount. After ErrUncertain, the count may have been set. It sends one
// EVALSHA.
func (l *Latch) TrySetCount(ctx context.Context, n int64) (bool, error) {
	if n <= 0 {
		engine.NeedContext(ctx)
		return false, l.wrap("try-set", fmt.Errorf("%w: invalid count %d: must be at least 1", redlatch.ErrInvalid, n))
	}
	return ask(ctx, l, "try-set", func(c *transport.Call) { l.scripts.Set(c, n) }, reply.Exists)
}

// CountDown decrements the count and opens the latch at 0, like Redisson's countDown. An open latch stays open.
// If the reply is lost or ctx ends first, CountDown returns ErrUncertain: it may have decremented the count, so
// calling it again may decrement the count a second time. It sends one EVALSHA, and retries only if the script
// certainly did not run.
func (l *Latch) CountDown(ctx context.Context) error {
	_, err := ask(ctx, l, "count-down", l.scripts.CountDown, func(answer any) (any, error) { return answer, nil })
	return err
}

// Count returns the count, which is 0 for an open latch, like Redisson's getCount. It sends GET to the master.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	n, err := ask(ctx, l, "count", l.kind.get, l.kind.count)
	return max(n, 0), err
}

// Delete deletes the count, which opens the latch, and reports whether it existed, like Redisson's delete.
// Callers of Wait return, but Redisson's waiters are not notified. If the key is not a count, Delete returns
// ErrWrongType. It sends one EVALSHA.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	return ask(ctx, l, "delete", l.scripts.Delete, reply.Exists)
}

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

func (l *Latch) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.name, Err: explain(err)}
}

func explain(err error) error {
	var answer *transport.ServerError
	if errors.As(err, &answer) && strings.Contains(answer.Text, "not an integer") {
		return fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return engine.Explain(err)
}

// ErrNotOpen is returned by [Latch.Wait] if the latch was closed at the last reply before the wait ended.
var ErrNotOpen = engine.ErrNotOpen

// Wait returns nil as soon as the latch is open, like Redisson's await. It subscribes to the latch's channel.
// It sends GET before and after it subscribes, after each message, and each time the poll cap elapses. Once it
// is waiting, it keeps waiting while Redis is unreachable.
//
// Errors: [ErrNotOpen] if ctx ended the wait (its error is joined) or the limit set by redlatch.WithMaxWaiters
// was reached; ErrNotSent if ctx had already ended, or if Redis did not reply within the command timeout or was
// unreachable when ctx ended the wait; ErrClosed, ErrWrongType, ErrInvalid and *transport.ServerError.
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
	switch {
	case !errors.Is(err, engine.ErrNotAcquired):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotOpen, engine.EndOf(ctx))
	}
	return fmt.Errorf("%w: WithMaxWaiters is reached", ErrNotOpen)
}

type kind struct{ key, channel string }

func (kind) Name() string                                    { return "latch" }
func (k kind) Key() string                                   { return k.key }
func (k kind) Channel(any) string                            { return k.channel }
func (k kind) Acquire(c *transport.Call, _ *acquire.Request) { k.get(c) }

// It is not known when the count will reach 0, so TTL is reply.NoTTL.
func (k kind) Decode(answer any) (acquire.Outcome, error) {
	n, err := k.count(answer)
	return acquire.Outcome{Granted: n <= 0, TTL: reply.NoTTL}, err
}

func (k kind) get(c *transport.Call) {
	c.Command, c.NumKeys = "GET", 1
	c.Args = append(c.Args, k.key)
}

func (kind) count(answer any) (int64, error) {
	n, err := reply.Count(answer)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", redlatch.ErrWrongType, err)
	}
	return n, nil
}

type gate struct{}

func (gate) Waiter(*acquire.Acquisition) acquire.Waiter { return acquire.Alone() }

// noEffect is the error of a GET whose reply was lost. It counts as not sent, so the GET is repeated.
type noEffect struct{ error }

func (e noEffect) Error() string {
	return "redlatch: no reply to GET: " + strings.TrimPrefix(strings.TrimPrefix(e.error.Error(), engine.ErrUncertain.Error()), ": ")
}

func (e noEffect) As(target any) bool { return errors.As(e.error, target) }

func (e noEffect) Is(target error) bool {
	return target == engine.ErrNotSent || target != engine.ErrUncertain && errors.Is(e.error, target)
}

type passer struct{ acquire.BareClaim }

var (
	_ acquire.Claims = passer{}
	_ acquire.Claim  = passer{}

	question acquire.Request // shared by all callers
)

func (p passer) Claim(acquire.Reusable) acquire.Claim { return p }
func (passer) Request() *acquire.Request              { return &question }
func (passer) Grant(time.Time, acquire.Outcome) error { return nil }
func (passer) Disown()                                {}
func (passer) Late(any, error) *engine.InDoubt        { return nil }

func (passer) Settle(_ context.Context, err error) (any, error) { return nil, noEffect{err} }
