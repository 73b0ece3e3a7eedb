package rsemaphore

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
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
	l, err := s.of(ctx, "acquire", n)
	if err != nil {
		return nil, err
	}
	return held(l.Lock(ctx, termsOf(opts).lock...))("acquire", n)
}

// TryAcquire takes n permits if they are available, with one attempt, or none when callers of this
// client that wait come first. Else it returns ErrNotAcquired. WithWait makes no sense here and
// gives ErrInvalid. Otherwise as [Expirable.Acquire].
func (s *Expirable) TryAcquire(ctx context.Context, n int, opts ...AcquireOption) (*Hold, error) {
	l, err := s.of(ctx, "try-acquire", n)
	if err != nil {
		return nil, err
	}
	return held(l.TryLock(ctx, termsOf(opts).lock...))("try-acquire", n)
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

// of returns the semaphore as what n of its permits are locked with.
func (s *Expirable) of(ctx context.Context, op string, n int) (*rlock.Lock, error) {
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
	return l, nil
}

// held makes a hold of permits of what locking them gave.
func held(h *rlock.Hold, err error) func(op string, n int) (*Hold, error) {
	return func(op string, n int) (*Hold, error) {
		if err != nil {
			return nil, named(op, err)
		}
		return &Hold{h, n}, nil
	}
}

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
	answer, err := s.run(ctx, fill)
	return answer, failed(op, s.Name(), err)
}

// publish is ask for a call whose script publishes.
func (s *Expirable) publish(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	l := s.single.Internal()
	kind, channel := l.Kind.Name(), l.Kind.Channel(nil)
	if l.Engine.MayPublish(kind) {
		return s.ask(ctx, op, fill)
	}
	answer, err := s.run(ctx, func(c *transport.Call) {
		fill(c)
		l.Engine.GuardPublish(c, channel)
	})
	return answer, failed(op, s.Name(), l.Engine.Guarded(kind, channel, err))
}

func (s *Expirable) run(ctx context.Context, fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	l := s.single.Internal()
	if l.Err == nil {
		l.Prepare(ctx)
	}
	return l.Ask(ctx, fill)
}
