package rsemaphore

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Expirable is a semaphore by name whose permits have ids and leases. It holds no permit and no
// state of its own: any number of goroutines may use one Expirable, and any number of them may
// be made for one name. Errors are *redlatch.LockError, which wrap what went wrong.
type Expirable struct {
	single    *rlock.Lock // of one permit
	semaphore *semaphore
}

// NewExpirable returns the semaphore called name: Redisson's getPermitExpirableSemaphore. It
// sends nothing. A name that no semaphore can have shows as redlatch.ErrInvalid in every call.
func NewExpirable(client *redlatch.Client, name string, opts ...Option) *Expirable {
	s := &Expirable{single: &rlock.Lock{}}
	*s.single.Internal() = hold.NewLock(engine.EngineOf(client), name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		s.semaphore = newSemaphore(e, mapped, shapeOf(opts).strict)
		return s.semaphore.of(1)
	})
	return s
}

// Internal returns the semaphore as other packages of this module know it: one permit of it is
// what they lock.
func (s *Expirable) Internal() *hold.Lock { return s.single.Internal() }

// Name returns the name that the semaphore was made with.
func (s *Expirable) Name() string { return s.single.Name() }

// Acquire takes n permits, all of them or none, and waits for them as long as it must. ctx bounds
// the wait and nothing else: the hold outlives it. The permits' lease is renewed until Release,
// unless [WithLease] says otherwise; when the process dies they come back within one lease.
//
// It sends one EVALSHA when they are available. Else it waits, behind the callers of this client
// that have come before: see the package documentation. A semaphore that was never set has no
// permits, and is waited for: the log and the error say so.
//
// Errors are those of rlock.Lock.Lock, which say of the permits what they say of a lock:
// ErrNotAcquired, ErrNotSent, ErrUncertain (what the attempt has taken is given back),
// ErrClosed, ErrWrongType, ErrNotReplicated; [ErrTooMany]; and ErrInvalid for an n below 1 or
// above [MaxPermits].
func (s *Expirable) Acquire(ctx context.Context, n int, opts ...AcquireOption) (*Hold, error) {
	return s.acquire(ctx, "acquire", n, (*rlock.Lock).Lock, opts)
}

// TryAcquire takes n permits if they are available, with one attempt, or none when callers of this
// client that wait come first. Else it returns ErrNotAcquired. WithWait makes no sense here and
// gives ErrInvalid. Otherwise as [Expirable.Acquire].
func (s *Expirable) TryAcquire(ctx context.Context, n int, opts ...AcquireOption) (*Hold, error) {
	return s.acquire(ctx, "try-acquire", n, (*rlock.Lock).TryLock, opts)
}

// Do takes n permits as [Expirable.Acquire] does, runs fn and releases them, also when fn panics.
// The context that fn gets is [Hold.Context]: it ends when a permit is lost. Do returns fn's
// error; when a permit was lost or could not be released, that error is joined to it.
func (s *Expirable) Do(ctx context.Context, n int, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	h, err := s.Acquire(ctx, n, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, h.Internal().Subject(), doing{h}, fn)
}

// doing is a hold as Do has it.
type doing struct{ *Hold }

// Unlock gives the hold up.
func (d doing) Unlock() error { return d.Release() }

// acquire is Acquire and TryAcquire: it calls a lock of n permits.
func (s *Expirable) acquire(ctx context.Context, op string, n int, call locking, opts []AcquireOption) (*Hold, error) {
	engine.NeedContext(ctx)
	if err := checkCount(int64(n), 1, MaxPermits); err != nil {
		return nil, failed(op, s.Name(), err)
	}
	l := s.single
	if n > 1 {
		l = &rlock.Lock{}
		*l.Internal() = *s.single.Internal()
		l.Internal().Kind, l.Internal().Strategy = s.semaphore.of(int64(n))
	}
	if l.Internal().Err == nil {
		l.Internal().Prepare(ctx)
	}
	h, err := call(l, ctx, termsOf(opts).lock...)
	if err != nil {
		return nil, named(op, err)
	}
	return &Hold{h, n}, nil
}

// locking is rlock.Lock.Lock or TryLock.
type locking func(*rlock.Lock, context.Context, ...rlock.Option) (*rlock.Hold, error)

// Release gives the permits with these ids back, from any client or language, such as those that
// a Java program has acquired, and returns how many that were. ErrNotHeld says that none of the
// ids has a permit: it was released, or its lease was over. A hold of this process is given up
// with [Hold.Release]; one whose permit was released here is lost. It may be repeated, such as
// after ErrUncertain. It sends one EVALSHA, which gives back those that there are, where
// Redisson's release of a list gives back none when one is unknown.
func (s *Expirable) Release(ctx context.Context, ids ...string) (int, error) {
	raw, err := parseIDs(ids)
	if err != nil {
		return 0, failed("release", s.Name(), err)
	}
	answer, err := s.publish(ctx, "release", func(c *transport.Call) {
		s.semaphore.scripts.Release(c, s.semaphore.clock.NowMillis(), raw, idBytes)
	})
	if err != nil {
		return 0, err
	}
	returned, _, err := reply.ReturnedPermits(answer)
	if err == nil && returned == 0 {
		err = fmt.Errorf("%w: no permit has one of these ids", redlatch.ErrNotHeld)
	}
	return int(returned), failed("release", s.Name(), err)
}

// ask runs a call that is repeated only when it certainly did not run.
func (s *Expirable) ask(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	return s.run(ctx, op, s.Internal().Ask, fill)
}

// publish is ask for a call whose script publishes.
func (s *Expirable) publish(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	return s.run(ctx, op, s.Internal().Publish, fill)
}

func (s *Expirable) run(ctx context.Context, op string, run asking, fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	if l := s.Internal(); l.Err == nil {
		l.Prepare(ctx)
	}
	answer, err := run(ctx, fill)
	return answer, failed(op, s.Name(), err)
}

// asking is hold.Lock.Ask or Publish.
type asking func(ctx context.Context, fill func(*transport.Call)) (any, error)

// TrySetPermits makes the semaphore with n permits, 0 to 2^31-1, unless it exists, and reports
// whether it did. It never changes how many there are, so each process may call it when it
// starts. Do not delete the key to set it anew while permits are taken: they come back, and
// there are more than n then; see [Expirable.SetPermits]. Errors: ErrInvalid, ErrNotSent,
// ErrUncertain, after which it may be repeated, ErrClosed, and *transport.ServerError. It sends
// one EVALSHA.
func (s *Expirable) TrySetPermits(ctx context.Context, n int) (bool, error) {
	const op = "try-set-permits"
	answer, err := s.change(ctx, op, int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.TrySet(c, int64(n), 0) })
	if err != nil {
		return false, err
	}
	made, err := reply.Exists(answer)
	return made, failed(op, s.Name(), err)
}

// SetPermits sets how many permits the semaphore has, with those that are taken: 0 to 2^31-1.
// Where more are taken than that, none is available until enough of them have come back. It is
// for a number that changes while permits are out, and may be repeated. Errors are those of
// [Expirable.TrySetPermits], and ErrWrongType. It sends one EVALSHA.
func (s *Expirable) SetPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "set-permits", int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.Set(c, int64(n)) })
	return err
}

// AddPermits makes n permits more available, or fewer when n is below 0; a semaphore that does
// not exist has them then. It must not be repeated after ErrUncertain: look at
// [Expirable.Permits], or use [Expirable.SetPermits]. Errors as there. It sends one EVALSHA.
func (s *Expirable) AddPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "add-permits", int64(n), -maxCount, func(c *transport.Call) { s.semaphore.scripts.Add(c, int64(n)) })
	return err
}

// change runs a call that changes the number of permits.
func (s *Expirable) change(ctx context.Context, op string, n, least int64, fill func(*transport.Call)) (any, error) {
	if err := checkCount(n, least, maxCount); err != nil {
		return nil, failed(op, s.Name(), err)
	}
	return s.publish(ctx, op, fill)
}

// Available returns how many permits can be taken now, below 0 when [Expirable.SetPermits] has
// left fewer than are taken. Those whose leases are over count. It sends one EVALSHA, which
// changes nothing.
func (s *Expirable) Available(ctx context.Context) (int, error) {
	_, available, _, err := s.count(ctx, "available")
	return int(available), err
}

// Acquired returns how many permits are taken, by clients of any language. Otherwise as
// [Expirable.Available].
func (s *Expirable) Acquired(ctx context.Context) (int, error) {
	_, _, taken, err := s.count(ctx, "acquired")
	return int(taken), err
}

// Permits returns how many permits there are, available and taken, 0 for a semaphore that does
// not exist. Otherwise as [Expirable.Available].
func (s *Expirable) Permits(ctx context.Context) (int, error) {
	exists, available, taken, err := s.count(ctx, "permits")
	if !exists {
		return 0, err
	}
	return int(available + taken), err
}

func (s *Expirable) count(ctx context.Context, op string) (exists bool, available, taken int64, err error) {
	answer, err := s.ask(ctx, op, func(c *transport.Call) { s.semaphore.scripts.Count(c, s.semaphore.clock.NowMillis()) })
	if err != nil {
		return false, 0, 0, err
	}
	exists, available, taken, err = reply.CountedPermits(answer)
	return exists, available, taken, failed(op, s.Name(), err)
}

// Hold is permits of one semaphore that were acquired together, until they are given up or
// lost. All methods are safe for concurrent use, by any goroutine.
type Hold struct {
	lock *rlock.Hold
	n    int
}

// Internal returns the hold as other packages of this module know it.
func (h *Hold) Internal() *hold.Hold { return h.lock.Internal() }

// Name returns the semaphore's name.
func (h *Hold) Name() string { return h.lock.Name() }

// N returns how many permits the hold has.
func (h *Hold) N() int { return h.n }

// ID returns the id of the first permit, 32 hexadecimal digits, as Redisson's acquire returns
// it. A client that has the id can release the permit. It sends nothing.
func (h *Hold) ID() string { return h.ids()[:idChars] }

// IDs returns the ids of all permits, as [Hold.ID].
func (h *Hold) IDs() []string { return strings.Split(h.ids(), ",") }

func (h *Hold) ids() string {
	text, _ := h.lock.Internal().Request().Owner.(string) // always one
	return text
}

// Err returns nil while the hold has all its permits, and afterwards why not: ErrLost, as a
// redlatch.Loss that tells the reason, ErrMaxHold, ErrNotHeld after Release or LetExpire, or
// ErrClosed. It asks the clocks and not the server.
func (h *Hold) Err() error { return h.lock.Err() }

// Remaining returns how long the hold lasts if it is not renewed any more, less the loss margin;
// 0 when it is over.
func (h *Hold) Remaining() time.Duration { return h.lock.Remaining() }

// Context returns a context that ends when parent does and when the hold does. Its cause, see
// context.Cause, is then what [Hold.Err] returns. With a fixed lease or a maximum it has that
// deadline. Use it for the work that needs the permits. It proves nothing: to acquire with it
// takes other permits.
func (h *Hold) Context(parent context.Context) context.Context { return h.lock.Context(parent) }

// Release gives the permits back. It needs no context: it takes one command timeout at most,
// less when less is left of the lease. The hold's contexts end before anything is sent. Later
// calls do nothing and return the first one's result.
//
// It returns nil when the hold had its permits until now. ErrLost: one of them was lost before;
// the others are given back all the same. ErrMaxHold: the hold had reached its maximum.
// ErrUncertain or ErrNotSent: Redis did not answer in time; the release goes on in the
// background until the lease is over, which does no harm when it arrives twice. ErrClosed: the
// client was closed, and the permits are left to their lease. It sends one EVALSHA.
func (h *Hold) Release() error { return named("release", h.lock.Unlock()) }

// LetExpire ends the hold without giving the permits back: they are not renewed any more and come
// back when their lease is over, or when another client releases their ids. It sends nothing.
// Errors are those of rlock.Hold.LetExpire.
func (h *Hold) LetExpire() error { return named("let-expire", h.lock.LetExpire()) }

// Inspection is a semaphore as the server had it at one moment.
type Inspection struct {
	// Exists is false for a semaphore that was never set, or was deleted.
	Exists bool
	// Available is how many permits can be taken, below 0 when more are taken than there
	// are; those whose leases are over are among Taken still.
	Available int
	// Taken is how many permits are taken.
	Taken int
	// TTL is how long the semaphore lives, redlatch.NoTTL for ever, 0 when it does not exist.
	TTL time.Duration
	// Permits are those of the taken ones that end first, [MaxPermits] at most, in the order
	// in which they end.
	Permits []Permit
}

// Permit is one that is taken.
type Permit struct {
	// ID is its id, with which [Expirable.Release] gives it back.
	ID string
	// Left is what its lease has left by the clock of this client, 0 when it is over: the next
	// attempt gives it back. redlatch.NoTTL, which is negative, when it never ends.
	Left time.Duration
}

// Inspect returns the permits that are taken, by clients of any language, and how many are
// available. Errors are those of [Expirable.Available]. It sends one EVALSHA, which changes
// nothing.
func (s *Expirable) Inspect(ctx context.Context) (*Inspection, error) {
	const op = "inspect"
	answer, err := s.ask(ctx, op, func(c *transport.Call) { s.semaphore.scripts.Inspect(c, 0, MaxPermits-1) })
	if err != nil {
		return nil, err
	}
	seen, err := reply.InspectedPermits(answer)
	if err != nil {
		return nil, failed(op, s.Name(), err)
	}
	in := &Inspection{Exists: seen.Left != reply.NoKey, Taken: int(seen.Taken), TTL: max(seen.Left, redlatch.NoTTL)}
	if !in.Exists {
		in.TTL = 0
	} else if in.Available, err = strconv.Atoi(seen.Available); err != nil {
		return nil, failed(op, s.Name(), fmt.Errorf("%w: the key must be a number of permits", redlatch.ErrWrongType))
	}
	now := float64(s.semaphore.clock.NowMillis())
	for _, p := range seen.Permits {
		left := redlatch.NoTTL
		if p.Ends < codec.PermitForever {
			left = limits.FromMillis(int64(min(max(p.Ends-now, 0), math.MaxInt64/2))) // the conversion of more is undefined
		}
		in.Permits = append(in.Permits, Permit{hex.EncodeToString([]byte(p.ID)), left})
	}
	return in, nil
}
