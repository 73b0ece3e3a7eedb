// Package rfencedlock is Redisson's fenced lock, RFencedLock: a lock whose every hold has a
// fencing token, a number that is higher than that of every hold before it. [New] makes it of
// the plain lock and [NewFair] of the fair lock, which Redisson does not have with tokens.
//
// # What a token is for
//
// A lease cannot stop a process that is paused, or code that does not look at its context.
// When the process goes on, its lease is over and another holder is at work; only what they
// both write to can refuse the late one. For that each write carries the token of its hold,
// and the resource refuses a token below the highest that it has seen:
//
//	A: Lock ──▶ token 7 ──▶ paused ─────────────────────────▶ writes with 7: refused
//	                           │                            ▲
//	                           ▼ its lease ends             │ the resource has seen 8
//	B:                       Lock ──▶ token 8 ──▶ writes with 8
//
// Package fence has such checks for SQL databases, for Redis and for HTTP servers. A token
// that nothing checks protects nothing.
//
// # Keys
//
// Beside the keys of the plain or fair lock is one more, the counter: a string that holds the
// last token that was given. Each acquisition raises it by one in the same script: Lock and
// TryLock, re-entry, a transfer to the next caller of the process, and Resume. It has no time
// to live, and unlock, ForceUnlock and expiry leave it alone. Redisson's RFencedLock of the
// same name uses the same counter. A plain or fair lock of that name, RLock or RFairLock in
// Java, excludes the fenced one, and gives no tokens.
//
// # When the counter is lost
//
// Tokens are worth as much as the counter lasts. An eviction (maxmemory-policy allkeys-*),
// FLUSHALL, a deleted key, or a failover to a replica that did not have the last increment
// yet, makes it begin again, at 1 or a little below where it was. A resource that has seen
// higher tokens then refuses all holders until the counter has caught up; one that has not can
// be given a token twice. [WithEpoch] makes locks refuse a counter that began again, until an
// operator has begun another epoch; it does not see one that has lost a few increments, which
// redlatch.WithReplicaSync makes rarer. docs/reliability.md says what to set.
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

var (
	// ErrCounter says that the counter of a fenced lock holds no number, or stands at 2^63-1
	// and cannot be raised. Nothing is held, and the counter is as it was. A number below 0
	// is transport.ErrBadReply: each attempt raises it by one, and gives the lock back.
	ErrCounter = errors.New("redlatch: the lock's token counter cannot be raised")

	// ErrEpoch says that the counter of a fenced lock has not reached the epoch that the lock
	// was made with: the epoch has not begun, or the counter was lost and began again.
	// Nothing is held.
	ErrEpoch = errors.New("redlatch: the lock's token counter has not reached its epoch")
)

// MaxEpoch is the last epoch that there can be. All its tokens are below 2^53, so that programs
// whose numbers are floating-point have them exactly.
const MaxEpoch = 1<<13 - 1

// epochBits is how many binary digits of a token count within an epoch.
const epochBits = 40

// Option sets something about a fenced lock.
type Option func(*settings)

type settings struct {
	least int64
	err   error
}

// WithEpoch makes the lock refuse, with ErrEpoch, to give tokens below those of the epoch n,
// from 1 to [MaxEpoch]. The tokens of epoch n are those from n × 2^40 on, so a counter that was
// lost and begins again at 1 gives none, and a human decides. [Lock.BeginEpoch] begins an
// epoch. All programs that share the lock should have the same epoch; Redisson's have none,
// and take the lock with the tokens that there are, which guards refuse. Default: no epoch.
func WithEpoch(n int) Option {
	return func(s *settings) {
		if n < 1 || n > MaxEpoch {
			s.err = fmt.Errorf("%w: the epoch %d is not from 1 to %d", redlatch.ErrInvalid, n, MaxEpoch)
			return
		}
		s.least = int64(n) << epochBits
	}
}

// BeginEpoch raises the counter to the first token of the epoch that the lock was made with,
// and reports whether it was below. Call it once, by hand, before the first use of an epoch;
// never for one that has had tokens already, since those would be given again. It does not
// matter whether the lock is held. It returns redlatch.ErrInvalid for a lock without an epoch, and
// ErrCounter when the counter holds no number. It sends one EVALSHA.
func (l *Lock) BeginEpoch(ctx context.Context) (bool, error) {
	failed := func(err error) error {
		return l.explain(&redlatch.LockError{Op: "begin-epoch", Name: l.Name(), Err: err})
	}
	if l.least == 0 && l.Internal().Err == nil {
		return false, failed(fmt.Errorf("%w: the lock was made without WithEpoch", redlatch.ErrInvalid))
	}
	answer, err := l.Internal().Ask(ctx, func(c *transport.Call) { luasrc.FillRaise(c, l.counter(), l.least) })
	if err != nil {
		return false, failed(err)
	}
	raised, err := reply.Exists(answer)
	if err != nil {
		return false, failed(err)
	}
	return raised, nil
}

// explain gives the errors of the counter names of their own.
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
