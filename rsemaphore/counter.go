package rsemaphore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/countqueue"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Semaphore counts available permits but not their holders, so a dead process's permits are lost until they
// are restored with [Semaphore.AddPermits]. A call is retried only if it certainly did not run, and
// redlatch.WithReplicaSync is ignored. All methods are safe for concurrent use. Errors are of type
// *redlatch.LockError.
type Semaphore struct {
	engine *engine.Engine
	name   string
	err    error // not nil if the name is invalid
	kind   counter
}

// New returns the semaphore called name, like Redisson's getSemaphore. It sends nothing. If the name is invalid,
// every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, name string) *Semaphore {
	e := engine.EngineOf(client)
	mapped, err := e.Map(name)
	return &Semaphore{e, name, err, newCounter(e, mapped)}
}

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.name }

// Acquire acquires n permits (1 to 2^31-1), all or none. It waits for them until ctx ends, even if the
// semaphore was never set or has fewer permits. Call [Semaphore.Release] afterwards. The only supported option
// is rlock.WithWait; others result in ErrInvalid. It sends one EVALSHA if the permits are available.
//
// Errors: ErrNotAcquired if the wait ended; ErrUncertain if the reply was lost or did not arrive within half a
// second after ctx ended; ErrNotSent, ErrWrongType, ErrInvalid, ErrClosed. After ErrUncertain, do not call
// Release: a late reply releases the permits.
func (s *Semaphore) Acquire(ctx context.Context, n int, opts ...rlock.Option) error {
	return s.acquire(ctx, "acquire", int64(n), opts)
}

// TryAcquire is like [Semaphore.Acquire], but does not wait: it returns ErrNotAcquired if the permits are
// not available or other callers of this client are already waiting. WithWait results in ErrInvalid.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, opts ...rlock.Option) error {
	return s.acquire(ctx, "try-acquire", int64(n), opts)
}

func (s *Semaphore) acquire(ctx context.Context, op string, n int64, opts []rlock.Option) error {
	engine.NeedContext(ctx)
	a := newTaking(s, n)
	a.Op = op
	a.Start(ctx, 1)
	err := a.begin(ctx, op == "try-acquire", opts)
	if err != nil {
		a.ObserveFailed(err)
	} else if tell := s.engine.Hooks.Acquired; tell != nil {
		e := a.Acquired(codec.Owner{})
		e.NoHold = true
		engine.OrElse(func() { tell(a.Observed, e) }, a.giveBack)
	}
	return failed(op, s.name, err)
}

// The server does not know holders, so an attempt whose reply was lost cannot be resolved.
type taking struct {
	acquire.Acquisition
	acquire.BareClaim
	semaphore *Semaphore
	kind      counter
	request   acquire.Request
	late      chan lateReply // the result of the last attempt; buffered

	mu   sync.Mutex // guards left
	left bool       // the caller has returned
}

type lateReply struct {
	reply any
	err   error
}

var _ interface {
	acquire.Claims
	acquire.Claim
} = (*taking)(nil)

func newTaking(s *Semaphore, n int64) *taking {
	a := &taking{semaphore: s, kind: s.kind}
	a.kind.n = n
	a.Engine, a.Kind, a.Lock, a.Claims = s.engine, &a.kind, s.name, a
	a.Given = true // a retry could count twice
	return a
}

func (a *taking) begin(ctx context.Context, try bool, opts []rlock.Option) error {
	s := a.semaphore
	if err := acquire.Check(ctx, s.err); err != nil {
		return err
	}
	if err := checkCount(a.kind.n, 1, maxCount); err != nil {
		return err
	}
	wait, bounded, err := waitOf(opts, try)
	if err != nil {
		return err
	}
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	s.engine.Announce()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = a.Within(ctx, wait)
		defer cancel()
	}
	a.Try = try || bounded && wait == 0
	return a.Run(ctx, countqueue.New(s.engine, &a.kind, a.kind.n))
}

// Release releases n permits (1 to 2^31-1) and wakes waiters. Releasing more than were acquired adds
// permits, or creates the semaphore. ctx must not have ended. It sends one EVALSHA.
//
// Errors: ErrUncertain if the permits may or may not have been released; ErrNotSent, ErrWrongType, ErrInvalid,
// ErrClosed.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "release", int64(n), 1, func(c *transport.Call) {
		s.kind.scripts.Add(c, int64(n))
		c.Urgent = true
	})
	return err
}

// ReleaseIfExists is like [Semaphore.Release], but never creates the semaphore, and reports whether
// it exists. Use it for a semaphore with a TTL.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	const op = "release-if-exists"
	answer, err := s.ask(ctx, op, int64(n), 1, func(c *transport.Call) {
		s.kind.scripts.ReleaseExisting(c, int64(n))
		c.Urgent = true
	})
	return decoded(op, s.name, answer, err, reply.Exists)
}

// AddPermits adds n, which may be negative, to the available permits; the result may be negative. It keeps
// the TTL, unlike Redisson's addPermits. It returns the same errors as [Semaphore.Release] and sends one
// EVALSHA.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "add-permits", int64(n), -maxCount, func(c *transport.Call) { s.kind.scripts.Add(c, int64(n)) })
	return err
}

// Drain acquires all available permits and returns their number. If the number is negative, it is set to 0. It
// keeps the TTL, unlike Redisson's drainPermits. It returns the same errors as [Semaphore.Release] and sends
// one EVALSHA.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	answer, err := s.ask(ctx, "drain", 0, 0, s.kind.scripts.Drain)
	n, err := decoded("drain", s.name, answer, err, reply.Number)
	return int(n), err
}

// TrySetPermits creates the semaphore with n permits (0 to 2^31-1) unless it exists, and reports whether it
// did. The semaphore expires after ttl (at least 1 ms) even if permits are acquired, or never if ttl is 0.
// It may be repeated, returns the same errors as [Semaphore.Release], and sends one EVALSHA.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	const op = "try-set-permits"
	var ms int64
	if ttl != 0 {
		var err error
		if ms, err = limits.Lease(ttl); err != nil {
			return false, failed(op, s.name, err)
		}
	}
	answer, err := s.ask(ctx, op, int64(n), 0, func(c *transport.Call) { s.kind.scripts.TrySet(c, int64(n), ms) })
	return decoded(op, s.name, answer, err, reply.Exists)
}

// Available returns the number of available permits, or 0 if the semaphore does not exist. It sends GET.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	answer, err := s.ask(ctx, "available", 0, 0, func(c *transport.Call) {
		c.Command, c.NumKeys = "GET", 1
		c.Args = append(c.Args, s.kind.key)
	})
	n, err := decoded("available", s.name, answer, err, reply.Count)
	return int(n), err
}

func (s *Semaphore) ask(ctx context.Context, op string, n, least int64, fill func(*transport.Call)) (answer any, err error) {
	engine.NeedContext(ctx)
	if err = acquire.Check(ctx, s.err); err == nil {
		err = checkCount(n, least, maxCount)
	}
	if err == nil {
		answer, err = acquire.Ask(ctx, s.engine, &s.kind, true, fill)
	}
	return answer, failed(op, s.name, err)
}

type counter struct {
	key, channel string
	scripts      luasrc.Counter
	n            int64
}

func newCounter(e *engine.Engine, mapped string) counter {
	channel := protocol.SemaphoreChannel(mapped)
	return counter{mapped, channel, luasrc.Counter{Key: mapped, Channel: channel, Publish: e.Publish()}, 0}
}

func (*counter) Name() string  { return "counter" }
func (k *counter) Key() string { return k.key }

func (k *counter) Channel(any) string                            { return k.channel }
func (k *counter) Acquire(c *transport.Call, _ *acquire.Request) { k.scripts.Acquire(c, k.n) }

func (*counter) Decode(answer any) (acquire.Outcome, error) {
	taken, err := reply.TakenPermits(answer)
	out := acquire.Outcome{Granted: taken.Granted, TTL: taken.TTL, Available: taken.Available}
	if !taken.Exists {
		out.Hint = errNotSet
	}
	return out, err
}

// At most one attempt is uncertain at a time.
func (a *taking) Claim(acquire.Reusable) acquire.Claim {
	if a.late == nil {
		a.late = make(chan lateReply, 1)
	}
	return a
}

func (a *taking) Request() *acquire.Request            { return &a.request }
func (*taking) Grant(time.Time, acquire.Outcome) error { return nil }
func (*taking) Disown()                                {}

func (a *taking) Late(answer any, err error) *engine.InDoubt {
	if errors.Is(err, engine.ErrUncertain) {
		return nil // no reply arrived
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.left {
		a.late <- lateReply{answer, err}
		return nil
	}
	if err != nil {
		return nil
	}
	if out, err := a.kind.Decode(answer); err == nil && out.Granted {
		a.giveBack()
	}
	return nil
}

// Settle returns the result of an uncertain attempt, or err if it has not arrived; permits granted later are
// then released. If ctx has ended, it waits briefly for the result.
func (a *taking) Settle(ctx context.Context, err error) (any, error) {
	if ctx.Err() != nil {
		timer := time.NewTimer(acquire.Overdue)
		defer timer.Stop()
		select {
		case out := <-a.late:
			return out.reply, out.err
		case <-timer.C:
		case <-a.Engine.Closing():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case out := <-a.late:
		return out.reply, out.err
	default:
		a.left = true
		return nil, err
	}
}

func (a *taking) giveBack() {
	e, name, scripts, n := a.Engine, a.Lock, a.kind.scripts, a.kind.n
	give := func() {
		if err := addUntilRun(e, &scripts, n); err != nil {
			e.Logger.Warn("redlatch: abandoned permits may not have been released", "semaphore", name, "permits", n, "error", err)
		}
	}
	if !e.GoBeforeClose(give) { // otherwise the permits would be lost
		e.Logger.Warn("redlatch: client closed before abandoned permits were released", "semaphore", name, "permits", n)
	}
}

// addUntilRun retries for up to one lease if the call certainly did not run.
func addUntilRun(e *engine.Engine, scripts *luasrc.Counter, n int64) error {
	var pause engine.Backoff
	for began := time.Now(); ; {
		at := e.Attempt()
		scripts.Add(&at.Call, n)
		_, err := at.RunFor(e.Command, nil)
		if !engine.Passing(err) || time.Since(began) >= e.Lease || !e.Wait(pause.Next()) {
			return err
		}
	}
}
