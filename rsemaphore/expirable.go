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
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Expirable is a semaphore whose permits have IDs and leases. All methods are safe for concurrent use.
// Errors are of type *redlatch.LockError.
type Expirable struct {
	anyLock               // the same as single
	single    *rlock.Lock // for one permit
	semaphore *semaphore
}

type anyLock = hold.AnyLock

// NewExpirable returns the semaphore called name, like Redisson's getPermitExpirableSemaphore. It sends
// nothing. If the name is invalid, every call returns redlatch.ErrInvalid.
func NewExpirable(client *redlatch.Client, name string) *Expirable {
	single := &rlock.Lock{}
	s := &Expirable{anyLock: single, single: single}
	*hold.Of(single) = hold.NewLock(engine.EngineOf(client), name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		s.semaphore = newSemaphore(e, mapped)
		return s.semaphore.of(1)
	})
	return s
}

// Name returns the semaphore's name.
func (s *Expirable) Name() string { return s.single.Name() }

// Acquire acquires n permits (1 to 1000), all or none. It waits for them until ctx ends, even if the
// semaphore was never set or has 0 permits. ctx does not bound the hold. Leases are renewed until Release,
// unless rlock.WithLease is given. Holds are not reentrant. rlock.WithOwner and rlock.WithPolling result in
// ErrInvalid. It sends one EVALSHA if the permits are available.
//
// It returns the same errors as [rlock.Lock.Lock], and [ErrTooMany].
func (s *Expirable) Acquire(ctx context.Context, n int, opts ...rlock.Option) (*Hold, error) {
	return s.acquire(ctx, "acquire", n, (*rlock.Lock).Lock, opts)
}

// TryAcquire is like [Expirable.Acquire], but does not wait: it returns ErrNotAcquired if the permits are
// not available or other callers of this client are already waiting. WithWait results in ErrInvalid.
func (s *Expirable) TryAcquire(ctx context.Context, n int, opts ...rlock.Option) (*Hold, error) {
	return s.acquire(ctx, "try-acquire", n, (*rlock.Lock).TryLock, opts)
}

// Do acquires n permits as [Expirable.Acquire] does, calls fn with [Hold.Context], and releases them, even
// if fn panics. It returns fn's error, joined with ErrLost if a permit was lost, or with Release's error.
func (s *Expirable) Do(ctx context.Context, n int, fn func(ctx context.Context) error, opts ...rlock.Option) error {
	h, err := s.Acquire(ctx, n, opts...)
	if err != nil {
		return err
	}
	return hold.Of(h.lock).Do(ctx, doing{h}, fn)
}

type doing struct{ *Hold }

func (d doing) Unlock() error { return d.Release() }

func (s *Expirable) acquire(ctx context.Context, op string, n int, call locking, opts []rlock.Option) (*Hold, error) {
	engine.NeedContext(ctx)
	if err := checkCount(int64(n), 1, maxPermits); err != nil {
		return nil, failed(op, s.Name(), err)
	}
	l := s.single
	if n > 1 {
		l = &rlock.Lock{}
		*hold.Of(l) = *hold.Of(s.single)
		hold.Of(l).Kind, hold.Of(l).Strategy = s.semaphore.of(int64(n))
	}
	if hold.Of(l).Err == nil {
		hold.Of(l).Kind.Prepare(ctx)
	}
	h, err := call(l, ctx, opts...)
	if err != nil {
		return nil, named(op, err)
	}
	return &Hold{h}, nil
}

type locking func(*rlock.Lock, context.Context, ...rlock.Option) (*rlock.Hold, error)

// Release releases the permits with these IDs and returns the number of released permits. There may be 1 to
// 1000 IDs, from any client or language. Redisson does not release any permit if one is unknown. A hold that
// loses a permit this way is lost; for holds in this process, use [Hold.Release]. It sends one EVALSHA.
//
// Errors: ErrNotHeld if all permits had already been released or had expired; and the errors of
// [Expirable.SetPermits].
func (s *Expirable) Release(ctx context.Context, ids ...string) (int, error) {
	raw, err := parseIDs(ids)
	if err != nil {
		return 0, failed("release", s.Name(), err)
	}
	answer, err := s.run(ctx, "release", hold.Of(s).Publish, func(c *transport.Call) {
		s.semaphore.scripts.Release(c, s.semaphore.engine.Clock.NowMillis(), raw, idBytes)
	})
	if err != nil {
		return 0, err
	}
	returned, _, err := reply.ReturnedPermits(answer)
	if err == nil && returned == 0 {
		err = fmt.Errorf("%w: permits not acquired", redlatch.ErrNotHeld)
	}
	return int(returned), failed("release", s.Name(), err)
}

// Extend extends the leases of the permits with these IDs so that they end no earlier than lease from now. There may be
// 1 to 1000 IDs, from any client or language. Unlike Redisson's updateLeaseTime it never shortens a lease. A [Hold]
// still ends with its own lease: use Extend after [Hold.LetExpire], or for permits held by other programs. An expired
// permit can be extended until the next acquisition removes it. Extend can safely be repeated. It sends one EVALSHA.
//
// Errors: ErrNotHeld if a permit was released, or removed after it expired, or if the key of the permits
// holds another type; in that case, no permit is extended. It also returns the errors of
// [Expirable.SetPermits].
func (s *Expirable) Extend(ctx context.Context, lease time.Duration, ids ...string) error {
	const op = "extend"
	raw, err := parseIDs(ids)
	if err != nil {
		return failed(op, s.Name(), err)
	}
	ms, err := limits.Lease(lease)
	if err != nil {
		return failed(op, s.Name(), err)
	}
	answer, err := s.run(ctx, op, hold.Of(s).Ask, func(c *transport.Call) {
		luasrc.FillPermitRenew(c, s.semaphore.engine.Clock.NowMillis(), 1, func(int) (key, ids, lease any) {
			return s.semaphore.scripts.Permits, raw, ms
		})
	})
	if err != nil {
		return err
	}
	extended, err := reply.RenewedAt(answer, 0, 1)
	if err == nil && !extended {
		err = fmt.Errorf("%w: not all of the permits are acquired", redlatch.ErrNotHeld)
	}
	return failed(op, s.Name(), err)
}

// run calls Ask or Publish, which retry only if the script certainly did not run.
func (s *Expirable) run(ctx context.Context, op string, run func(context.Context, func(*transport.Call)) (any, error), fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	if l := hold.Of(s); l.Err == nil {
		l.Kind.Prepare(ctx)
	}
	answer, err := run(ctx, fill)
	return answer, failed(op, s.Name(), err)
}

// TrySetPermits creates the semaphore with n permits (0 to 2^31-1) unless it exists, and reports
// whether it did. Use SetPermits to change the number. It returns the same errors as
// [Expirable.SetPermits] and sends one EVALSHA.
func (s *Expirable) TrySetPermits(ctx context.Context, n int) (bool, error) {
	const op = "try-set-permits"
	answer, err := s.change(ctx, op, int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.TrySet(c, int64(n), 0) })
	return decoded(op, s.Name(), answer, err, reply.Exists)
}

// SetPermits sets the total number of permits, including acquired permits, to n (0 to 2^31-1). If more than n are
// acquired, none is available until enough have been released. SetPermits can safely be repeated. It sends one EVALSHA.
//
// Errors: ErrNotSent; ErrUncertain if the reply was lost; ErrWrongType, ErrInvalid, ErrClosed and
// *transport.ServerError.
func (s *Expirable) SetPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "set-permits", int64(n), 0, func(c *transport.Call) { s.semaphore.scripts.Set(c, int64(n)) })
	return err
}

// AddPermits adds n, which may be negative, to the number of permits, and creates the semaphore if needed. It
// returns the same errors as [Expirable.SetPermits]; after ErrUncertain, use SetPermits instead of repeating
// it. It sends one EVALSHA.
func (s *Expirable) AddPermits(ctx context.Context, n int) error {
	_, err := s.change(ctx, "add-permits", int64(n), -maxCount, func(c *transport.Call) { s.semaphore.scripts.Add(c, int64(n)) })
	return err
}

func (s *Expirable) change(ctx context.Context, op string, n, least int64, fill func(*transport.Call)) (any, error) {
	if err := checkCount(n, least, maxCount); err != nil {
		return nil, failed(op, s.Name(), err)
	}
	return s.run(ctx, op, hold.Of(s).Publish, fill)
}

// Available returns the number of available permits, including expired permits. It is negative if more
// permits are acquired than exist. It sends one EVALSHA, which does not change anything.
func (s *Expirable) Available(ctx context.Context) (int, error) {
	const op = "available"
	answer, err := s.run(ctx, op, hold.Of(s).Ask, func(c *transport.Call) { s.semaphore.scripts.Count(c, s.semaphore.engine.Clock.NowMillis()) })
	n, err := decoded(op, s.Name(), answer, err, reply.AvailablePermits)
	return int(n), err
}

// Hold is a set of permits that were acquired together. It is lost as soon as one permit is lost. It has IDs
// instead of an Owner: after [Hold.LetExpire] the permits are not renewed, but any program can release or
// extend them. All methods are safe for concurrent use.
type Hold struct {
	lock *rlock.Hold
}

// Name returns the semaphore's name.
func (h *Hold) Name() string { return h.lock.Name() }

// IDs returns the IDs of the permits, 32 hexadecimal digits each.
func (h *Hold) IDs() []string {
	text, _ := hold.Of(h.lock).Request().Owner.(string) // always a string
	return strings.Split(text, ",")
}

// Err returns nil while the hold has all its permits, and afterwards ErrLost with the reason as a
// redlatch.Loss, ErrMaxHold, ErrNotHeld after Release or LetExpire, or ErrClosed. It sends nothing.
func (h *Hold) Err() error { return h.lock.Err() }

// Remaining returns the remaining lease less the loss margin, or 0 once the hold has ended.
func (h *Hold) Remaining() time.Duration { return h.lock.Remaining() }

// Context returns a context for the work that needs the permits. It ends when parent or the hold ends, with
// [Hold.Err] as the cause. Its deadline is the hold's, if the lease is fixed or has a maximum. Acquiring with
// this context acquires additional permits.
func (h *Hold) Context(parent context.Context) context.Context { return h.lock.Context(parent) }

// Release ends the hold and its contexts, and releases the permits. It needs no context and takes at most
// one command timeout, less if the leases end earlier. Later calls return the first result. After LetExpire,
// it does nothing and returns nil. It sends one EVALSHA.
//
// Errors: ErrLost if a permit had already been lost; the others are released. ErrMaxHold if the hold had
// reached its maximum. ErrUncertain and ErrNotSent if Redis did not reply in time: the release continues in
// the background until the leases end. ErrClosed if the client was closed: the permits expire with their
// leases.
func (h *Hold) Release() error { return named("release", h.lock.Unlock()) }

// LetExpire ends the hold and keeps the permits until their leases expire or any client calls
// [Expirable.Release]. It returns the error of [Hold.Err] if the hold has ended. It sends nothing.
func (h *Hold) LetExpire() error { return named("let-expire", h.lock.LetExpire()) }

// Inspection is the state of a semaphore at one moment.
type Inspection struct {
	// Exists is false if the semaphore was never set, or was deleted.
	Exists bool
	// Available is the number of available permits. It is negative if more are acquired than exist.
	Available int
	// Acquired is the number of acquired permits. Expired ones count until the next acquisition.
	Acquired int
	// TTL is the semaphore's TTL. It is redlatch.NoTTL if the semaphore never expires, and 0 if it does not
	// exist.
	TTL time.Duration
	// Permits contains at most 1000 acquired permits in the order in which they expire.
	Permits []Permit
}

// Permit is an acquired permit.
type Permit struct {
	// ID is for [Expirable.Release].
	ID string
	// Left is the remaining lease by this client's clock. It is 0 if the lease has expired, and
	// redlatch.NoTTL, which is negative, if it never expires.
	Left time.Duration
}

// Inspect returns a consistent snapshot of the permits. It sends one EVALSHA, which does not change anything.
func (s *Expirable) Inspect(ctx context.Context) (*Inspection, error) {
	const op = "inspect"
	answer, err := s.run(ctx, op, hold.Of(s).Ask, func(c *transport.Call) { s.semaphore.scripts.Inspect(c, 0, maxPermits-1) })
	seen, err := decoded(op, s.Name(), answer, err, reply.InspectedPermits)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Exists: seen.Left != reply.NoKey, Acquired: int(seen.Taken), TTL: max(seen.Left, redlatch.NoTTL)}
	if !in.Exists {
		in.TTL = 0
	} else if in.Available, err = strconv.Atoi(seen.Available); err != nil {
		return nil, failed(op, s.Name(), fmt.Errorf("%w: the key must be a number of permits", redlatch.ErrWrongType))
	}
	now := float64(s.semaphore.engine.Clock.NowMillis())
	for _, p := range seen.Permits {
		left := redlatch.NoTTL
		if p.Ends < protocol.PermitForever {
			left = limits.FromMillis(int64(min(max(p.Ends-now, 0), math.MaxInt64/2))) // converting a larger value is undefined
		}
		in.Permits = append(in.Permits, Permit{hex.EncodeToString([]byte(p.ID)), left})
	}
	return in, nil
}
