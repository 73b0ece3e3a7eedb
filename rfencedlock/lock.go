package rfencedlock

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock by name whose holds have tokens. It has the methods of *rlock.Lock, and their
// options and errors; those that acquire return a [*Hold]. Any number of goroutines may use
// one Lock.
type Lock struct {
	*plain
	least int64 // what the counter must have reached
}

// plain is embedded under this name so that its field is no part of the documentation.
type plain = rlock.Lock

// New returns the fenced lock called name: Redisson's getFencedLock. It sends nothing. A name
// that no lock can have, and an epoch that there cannot be, show as redlatch.ErrInvalid in
// every call.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	return newLock(client, name, makePlain, opts)
}

// NewFair returns the fair lock called name with tokens. On the server it is the fair lock and
// a counter, so Redisson's RFairLock of that name waits in the same queue, but gives no
// tokens. Package rfairlock says what is different from a plain lock. Otherwise as [New].
func NewFair(client *redlatch.Client, name string, opts ...Option) *Lock {
	return newLock(client, name, makeFair, opts)
}

func newLock(client *redlatch.Client, name string, make func(counter) hold.Make, opts []Option) *Lock {
	var set settings
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	l := &rlock.Lock{}
	*l.Internal() = hold.NewLock(engine.EngineOf(client), name, make(counter{least: set.least}))
	if l.Internal().Err == nil {
		l.Internal().Err = set.err
	}
	return &Lock{l, set.least}
}

// Hold is a fenced lock that was acquired, until it is given up or lost. It has the methods of
// *rlock.Hold. All methods are safe for concurrent use.
type Hold struct{ *rlock.Hold }

// Token returns the newest token of the hold's owner, at least 1: that of the acquisition, or
// that of a later re-entry, which has one of its own. So the outer hold goes on with the token
// of the inner one, and is not refused for it. It stays the same after the hold has ended. It
// sends nothing.
func (h *Hold) Token() int64 { return h.Internal().Token() }

// Lock takes the lock and waits for it, as [rlock.Lock.Lock] does. ErrCounter says that the
// counter holds no number or cannot be raised, ErrEpoch that it has not reached the epoch of
// [WithEpoch]; the lock is not held then, and the counter is as it was. A free lock costs one
// EVALSHA.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Lock(ctx, opts...))
}

// TryLock takes the lock if it is free, as [rlock.Lock.TryLock] does, with the errors of
// [Lock.Lock]. It makes one attempt and does not wait, unlike Redisson's
// tryLockAndGetToken without arguments.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.TryLock(ctx, opts...))
}

// Resume takes over the lock that owner holds, as [rlock.Lock.Resume] does, with a token of its
// own: that of the side that had the lock before is late from then on.
func (l *Lock) Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Resume(ctx, owner, opts...))
}

// Do takes the lock as [Lock.Lock] does, runs fn and unlocks, also when fn panics. The context
// that fn gets is that of the hold, which has the token: it ends when the lock is lost. Do
// returns fn's error; when the lock was lost or could not be unlocked, that error is joined to
// it.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, h.Internal().Subject(), h, func(ctx context.Context) error { return fn(ctx, h) })
}

// Token returns the last token that was given for this lock, to any holder, 0 when there was
// none, as Redisson's getToken, asked of the master. Do not write with it: it may be that of
// another holder. It sends GET.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	answer, err := l.Internal().Ask(ctx, func(c *transport.Call) {
		c.Command, c.NumKeys = "GET", 1
		c.Args = append(c.Args, l.counter())
	})
	if err == nil {
		var token int64
		token, err = reply.Count(answer)
		if err == nil {
			return token, nil
		}
	}
	return 0, l.explain(&redlatch.LockError{Op: "token", Name: l.Name(), Err: err})
}

// held adds the token to what an acquisition gave.
func (l *Lock) held(h *rlock.Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, l.explain(err)
	}
	return &Hold{h}, nil
}

// counter returns the key of the lock's counter.
func (l *Lock) counter() string { return codec.TokenKey(l.Internal().Kind.Key()) }
