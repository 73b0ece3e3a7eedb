package rlatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
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

// check returns why a call with ctx cannot begin, nil when it can.
func (l *Latch) check(ctx context.Context) error {
	switch {
	case l.err != nil:
		return l.err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx))
	}
	return nil
}

// ask runs a call. While it certainly did not run it is tried again for one command timeout, or
// until ctx ends.
func (l *Latch) ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := l.engine.Enter(); err != nil {
		return nil, err
	}
	defer l.engine.Leave()
	var answer any
	err := l.engine.Retry(ctx, func() (err error) {
		answer, err = l.engine.RunGuarded(ctx, l.kind.Name(), l.kind.channel, fill)
		return err
	})
	return answer, l.engine.ExplainKey(ctx, l.kind.Name(), l.kind.key, engine.WithEnd(ctx, err))
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
