// Package rfencedlock provides Redisson's fenced lock, RFencedLock: each hold has a fencing token, a
// number higher than that of every earlier hold. [New] makes a plain lock with tokens, [NewFair] a
// fair one, which Redisson does not have.
//
// A lease cannot stop a process that is paused. When it resumes, another holder may be at work, and
// only the resource that both write to can reject the late write. Send the token with each write,
// and have the resource reject tokens below the highest it has seen; package fence has such checks
// for SQL, Redis and HTTP. A token that nothing checks protects nothing.
//
// The last token is stored in a counter next to the lock, which never expires. Lock, TryLock,
// reentry, a transfer to the next caller of the process, and Resume each raise it. Redisson's
// RFencedLock uses the same counter. A lock without tokens of the same name excludes the fenced one
// and gives no token.
//
// Tokens are only as durable as the counter. Eviction, FLUSHALL or a failover can set it back: then
// the resource rejects all holders until it catches up, or a token is given twice. [WithEpoch]
// detects a counter that started over, but not the loss of a few increments, which
// redlatch.WithReplicaSync makes rarer. See docs/reliability.md.
package rfencedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock whose holds have tokens. It has the methods of *rlock.Lock, but acquiring
// returns a [*Hold]. It is safe for concurrent use.
type Lock struct {
	*plain
	least int64 // of the counter
}

// plain keeps the embedded field out of the documentation.
type plain = rlock.Lock

// New returns the fenced lock with this name, Redisson's getFencedLock. It sends nothing. If the
// name or the epoch is invalid, every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	return newLock(client, name, makePlain, opts)
}

// NewFair returns the fair lock with this name and tokens; otherwise it is like [New]. Redisson's
// RFairLock of that name waits in the same queue, but gives no tokens. See package rfairlock.
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

// Hold is an acquired fenced lock. It has the methods of *rlock.Hold and is safe for concurrent use.
type Hold struct{ *rlock.Hold }

// Token returns the latest token of the hold's owner, at least 1. A reentry gets its own token, which
// the outer hold then also has. The token stays the same after the hold ends. Token sends nothing.
func (h *Hold) Token() int64 { return hold.Of(h).Token() }

// Lock acquires the lock like [rlock.Lock.Lock]. It also returns [ErrCounter] and [ErrEpoch]; then
// the lock is not held and the counter is unchanged. A free lock costs one EVALSHA.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Lock(ctx, opts...))
}

// TryLock acquires the lock if it is free, like [rlock.Lock.TryLock], with the errors of
// [Lock.Lock]. It does not wait, unlike Redisson's tryLockAndGetToken without arguments.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.TryLock(ctx, opts...))
}

// Resume takes over the lock that owner holds, like [rlock.Lock.Resume], and gets a new token. The
// previous side's token is outdated from then on.
func (l *Lock) Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*Hold, error) {
	return l.held(l.plain.Resume(ctx, owner, opts...))
}

// Do acquires the lock like [Lock.Lock], runs fn with the hold and its context, and unlocks, even if
// fn panics. The context ends when the lock is lost. Do returns fn's error, joined with the error of
// a lost lock or a failed unlock.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Of(h).Do(ctx, h, func(ctx context.Context) error { return fn(ctx, h) })
}

// Token returns the last token given to any holder, 0 if there was none, like Redisson's getToken
// on the master. Do not write with it: it may belong to another holder. It sends GET.
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

// held wraps the result of an acquisition.
func (l *Lock) held(h *rlock.Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, l.explain(err)
	}
	return &Hold{h}, nil
}

// counter returns the counter's key.
func (l *Lock) counter() string { return protocol.TokenKey(hold.Of(l).Kind.Key()) }

var (
	// ErrCounter is returned if the counter is not a number or has reached 2^63-1. The lock is
	// not held, and the counter is unchanged. A counter below 0 is transport.ErrBadReply: each
	// attempt raises it by one and releases the lock.
	ErrCounter = errors.New("redlatch: the lock's token counter cannot be raised")

	// ErrEpoch is returned if the counter is below the lock's epoch: the epoch has not begun, or
	// the counter was lost and started over. The lock is not held.
	ErrEpoch = errors.New("redlatch: the lock's token counter has not reached its epoch")
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

// WithEpoch makes acquisitions return ErrEpoch instead of tokens below epoch n, which is from 1 to
// 8191. The tokens of epoch n start at n × 2^40, so a counter that was lost and starts over at
// 1 gives none until an operator calls [Lock.BeginEpoch]. All programs that share the lock should
// use the same epoch. Redisson has no epochs and acquires the lock with low tokens, which the
// resource rejects. The default is no epoch.
func WithEpoch(n int) Option {
	return func(s *settings) {
		if n < 1 || n > maxEpoch {
			s.err = fmt.Errorf("%w: the epoch %d is not from 1 to %d", redlatch.ErrInvalid, n, maxEpoch)
			return
		}
		s.least = int64(n) << epochBits
	}
}

// BeginEpoch raises the counter to the first token of the lock's epoch and reports whether it was
// below. Call it once, by hand, before the first use of an epoch; never for an epoch that has had
// tokens, since they would be given again. The lock may be held. BeginEpoch returns redlatch.ErrInvalid for
// a lock without an epoch and ErrCounter if the counter is not a number. It sends one EVALSHA.
func (l *Lock) BeginEpoch(ctx context.Context) (raised bool, err error) {
	if l.least == 0 && hold.Of(l).Err == nil {
		err = fmt.Errorf("%w: the lock was made without WithEpoch", redlatch.ErrInvalid)
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

// explain turns the server's errors about the counter into ErrCounter and ErrEpoch.
func (l *Lock) explain(err error) error {
	var failed *redlatch.LockError
	var answer *transport.ServerError
	if !errors.As(err, &failed) || !errors.As(err, &answer) {
		return err
	}
	key := l.counter()
	switch text := answer.Text; {
	case strings.Contains(text, luasrc.ErrBehind):
		failed.Err = fmt.Errorf("%w (key %q): begin an epoch that was never used, see WithEpoch", ErrEpoch, key)
	case strings.Contains(text, "not an integer"), strings.Contains(text, "overflow"):
		failed.Err = fmt.Errorf("%w (key %q): %w", ErrCounter, key, failed.Err)
	case errors.Is(failed.Err, redlatch.ErrWrongType):
		failed.Err = fmt.Errorf("%w: the lock must be a hash, and its token counter, %q, a number", failed.Err, key)
	}
	return err
}
