// Package rfencedlock provides Redisson's fenced lock (getFencedLock): each hold has a fencing
// token, a number higher than that of every earlier hold. [NewFair] adds tokens to a fair lock.
//
// A lease cannot stop a paused process. When it resumes, another holder may be working, and only
// the resource can reject the late write. Send the token with each write, and make the resource
// reject tokens below the highest that it has seen; package fence has such checks for SQL, Redis
// and HTTP.
//
//	err := orders.Do(ctx, func(ctx context.Context, hold *rfencedlock.Hold) error {
//		return write(ctx, hold.Token())
//	})
//
// The last token is stored in a counter next to the lock, which never expires. Tokens are only as durable
// as the counter: eviction, FLUSHALL or a failover can reset it, and then the resource rejects all
// holders, or a token is issued twice. See [WithEpoch] and docs/reliability.md. A plain lock with the same
// name excludes this lock, but does not increment the token.
package rfencedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock whose holds have tokens. It has the methods of [*rlock.Lock], but acquiring it
// returns a [*Hold]. It is safe for concurrent use.
type Lock struct {
	*plain
	least int64 // minimum of the counter
}

type plain = rlock.Lock

// New returns the fenced lock with this name. It sends nothing. If the name or the epoch is invalid,
// every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	return newLock(client, name, makePlain, opts)
}

// NewFair is like [New], but returns a fair lock with tokens. Redisson does not have such a lock: its
// RFairLock with the same name waits in the same queue, but without tokens.
func NewFair(client *redlatch.Client, name string, opts ...Option) *Lock {
	return newLock(client, name, makeFair, opts)
}

func newLock(client *redlatch.Client, name string, make func(least int64) hold.Make, opts []Option) *Lock {
	var set settings
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	l := &rlock.Lock{}
	*hold.Of(l) = hold.NewLock(engine.EngineOf(client), name, make(set.least))
	if hold.Of(l).Err == nil {
		hold.Of(l).Err = set.err
	}
	return &Lock{l, set.least}
}

// Hold is an acquired fenced lock, with the methods of [*rlock.Hold]. All methods are safe for
// concurrent use.
type Hold struct{ *rlock.Hold }

// Token returns the latest token of the hold's owner, which is at least 1. A re-entry also increases
// the outer hold's token. The token does not change after the hold has ended. It sends nothing.
func (h *Hold) Token() int64 { return hold.Of(h).Token() }

// Lock acquires the lock as [rlock.Lock.Lock] does. It may also return [ErrCounter] and [ErrEpoch].
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Lock(ctx, opts...))
}

// TryLock makes one attempt, as [rlock.Lock.TryLock] does, and returns the same errors as
// [Lock.Lock]. Unlike Redisson's tryLockAndGetToken without arguments, it does not wait.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.TryLock(ctx, opts...))
}

// Resume takes over the lock held by owner, as [rlock.Lock.Resume] does, and increases the token. After
// the first write of this hold, the resource rejects writes of the previous holder.
func (l *Lock) Resume(ctx context.Context, owner codec.Owner, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Resume(ctx, owner, opts...))
}

// Do acquires the lock as [Lock.Lock] does, calls fn with the hold and its context, and unlocks, even
// if fn panics. It returns fn's error, joined with ErrLost if the lock was lost, or with Unlock's
// error.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Of(h).Do(ctx, h, func(ctx context.Context) error { return fn(ctx, h) })
}

// Token returns the last token issued to any holder, or 0 if there is none, like Redisson's getToken. Do
// not use it for writing, since it may belong to another holder. It sends GET to the master.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	answer, err := hold.Of(l).Ask(ctx, func(c *transport.Call) {
		c.Command, c.NumKeys = "GET", 1
		c.Args = append(c.Args, l.counter())
	})
	var token int64
	if err == nil {
		token, err = reply.Count(answer)
	}
	if err != nil {
		return 0, l.explain(&redlatch.LockError{Op: "token", Name: l.Name(), Err: err})
	}
	return token, nil
}

func (l *Lock) held(h *rlock.Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, l.explain(err)
	}
	return &Hold{h}, nil
}

func (l *Lock) counter() string { return protocol.TokenKey(hold.Of(l).Kind.Key()) }

var (
	// ErrCounter is returned if the counter is not a number or has reached 2^63-1. The lock is not held,
	// and the counter is unchanged. If the counter is negative, the error is transport.ErrBadReply.
	ErrCounter = errors.New("redlatch: cannot increment the lock's token counter")

	// ErrEpoch is returned if the counter is below the lock's epoch: BeginEpoch was not called, or the
	// counter was lost. The lock is not held.
	ErrEpoch = errors.New("redlatch: the lock's token counter is below its epoch")
)

const (
	// maxEpoch has tokens below 2^53, which floating-point numbers represent exactly.
	maxEpoch = 1<<13 - 1
	// epochBits is the number of bits of a token that count within an epoch.
	epochBits = 40
)

// Option configures a fenced lock.
type Option func(*settings)

type settings struct {
	least int64
	err   error
}

// WithEpoch makes acquisitions fail with ErrEpoch instead of issuing a token from an epoch before n (1 to
// 8191). The tokens of epoch n start at n × 2^40, so a lost counter, which restarts at 1, issues no tokens
// until an operator calls [Lock.BeginEpoch]. All programs that share the lock should use the same epoch;
// Redisson does not support epochs and acquires the lock with low tokens. By default there is no epoch.
func WithEpoch(n int) Option {
	return func(s *settings) {
		if n < 1 || n > maxEpoch {
			s.err = fmt.Errorf("%w: invalid epoch %d: must be from 1 to %d", redlatch.ErrInvalid, n, maxEpoch)
			return
		}
		s.least = int64(n) << epochBits
	}
}

// BeginEpoch raises the counter to the first token of the lock's epoch, and reports whether it was lower
// before. Call it once, manually, before an epoch is used, and never for an epoch in which tokens have
// been issued, since they would be issued again. The lock may be held. It returns redlatch.ErrInvalid for
// a lock without an epoch. It may also return ErrCounter. It sends one EVALSHA.
func (l *Lock) BeginEpoch(ctx context.Context) (raised bool, err error) {
	if l.least == 0 && hold.Of(l).Err == nil {
		err = fmt.Errorf("%w: lock created without WithEpoch", redlatch.ErrInvalid)
	} else {
		var answer any
		answer, err = hold.Of(l).Ask(ctx, func(c *transport.Call) { luasrc.FillRaise(c, l.counter(), l.least) })
		if err == nil {
			raised, err = reply.Exists(answer)
		}
	}
	if err != nil {
		return false, l.explain(&redlatch.LockError{Op: "begin-epoch", Name: l.Name(), Err: err})
	}
	return raised, nil
}

func (l *Lock) explain(err error) error {
	var failed *redlatch.LockError
	var answer *transport.ServerError
	if !errors.As(err, &failed) || !errors.As(err, &answer) {
		return err
	}
	key := l.counter()
	switch text := answer.Text; {
	case strings.Contains(text, luasrc.ErrBehind):
		failed.Err = fmt.Errorf("%w (key %q): begin an unused epoch; see WithEpoch", ErrEpoch, key)
	case strings.Contains(text, "not an integer"), strings.Contains(text, "overflow"):
		failed.Err = fmt.Errorf("%w (key %q): %w", ErrCounter, key, failed.Err)
	case errors.Is(failed.Err, redlatch.ErrWrongType):
		failed.Err = fmt.Errorf("%w: the lock must be a hash and its token counter %q a number", failed.Err, key)
	}
	return err
}
