package rsemaphore

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/countqueue"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Semaphore is a semaphore by name that only counts. The permits of a process that dies are
// lost, until a program adds them: see the package documentation. Any number of goroutines may
// use one Semaphore, and any number of them may be made for one name. Errors are
// *redlatch.LockError, which wrap what went wrong.
type Semaphore struct {
	engine *engine.Engine
	name   string
	err    error // why the name cannot be used
	strict bool
	kind   counter
}

// New returns the semaphore called name: Redisson's getSemaphore. It sends nothing. A name that
// no semaphore can have shows as redlatch.ErrInvalid in every call.
func New(client *redlatch.Client, name string, opts ...Option) *Semaphore {
	e := engine.EngineOf(client)
	mapped, err := e.Map(name)
	return &Semaphore{e, name, err, shapeOf(opts).strict, newCounter(e, mapped)}
}

// Name returns the name that the semaphore was made with.
func (s *Semaphore) Name() string { return s.name }

// Acquire takes n permits, 1 to 2^31-1, all of them or none, and waits for them as long as it
// must, behind the callers of this client that have come before. ctx bounds the wait. Give them
// back with [Semaphore.Release].
//
// If the semaphore was never set, Acquire waits until it is; the log and the error say so. It also
// waits for more permits than there are in all, which the counter does not know. It sends one
// EVALSHA when they are available.
//
// Errors: ErrNotAcquired when the wait was over; ErrNotSent; ErrInvalid; ErrWrongType;
// ErrClosed. ErrUncertain says that the reply was lost, or came not within half a second after
// ctx had ended: the permits may be taken, and the counter cannot tell. They are given back if
// the reply comes later. Do not release them, or there are more than were set.
func (s *Semaphore) Acquire(ctx context.Context, n int, opts ...AcquireOption) error {
	t := termsOf(opts)
	return s.acquire(ctx, "acquire", int64(n), &t)
}

// TryAcquire takes n permits if they are available, with one attempt, or none when callers of
// this client that wait come first. Else it returns ErrNotAcquired. Otherwise as
// [Semaphore.Acquire].
func (s *Semaphore) TryAcquire(ctx context.Context, n int, opts ...AcquireOption) error {
	t := termsOf(opts)
	return s.acquire(ctx, "try-acquire", int64(n), &t)
}

func (s *Semaphore) acquire(ctx context.Context, op string, n int64, t *terms) error {
	engine.NeedContext(ctx)
	a := &taking{semaphore: s, kind: s.kind, n: n}
	a.kind.n = n
	a.Engine, a.Kind, a.Lock, a.Op = s.engine, &a.kind, s.name, op
	a.Start(ctx, 1)
	err := a.begin(ctx, op == "try-acquire", t)
	if err != nil {
		a.ObserveFailed(err)
	} else if tell := s.engine.Hooks.Acquired; tell != nil {
		e := a.Acquired(redlatch.Owner{})
		e.NoHold = true
		tell(a.Observed, e)
	}
	return failed(op, s.name, err)
}

// taking is one call of Acquire or TryAcquire.
type taking struct {
	acquire.Acquisition
	semaphore *Semaphore
	kind      counter
	n         int64
}

// begin checks everything that can be checked before something is sent.
func (a *taking) begin(ctx context.Context, try bool, t *terms) error {
	s := a.semaphore
	if err := acquire.Check(ctx, s.err); err != nil {
		return err
	}
	if err := checkCount(a.n, 1, maxCount); err != nil {
		return err
	}
	if err := t.check(try); err != nil {
		return err
	}
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	s.engine.Announce()
	if t.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = a.Within(ctx, t.wait)
		defer cancel()
	}
	a.Claims = a
	a.Try, a.Given = try || t.bounded && t.wait == 0, true // a second attempt could count twice
	return a.Run(ctx, countqueue.New(s.engine, &a.kind, a.n, s.strict))
}

func (a *taking) Claim(acquire.Reusable) acquire.Claim {
	return &claim{taking: a, late: make(chan lateReply, 1)}
}

// Release gives n permits back, 1 to 2^31-1, and wakes waiters. Any client can, and the counter does
// not know how many were taken: to release what was not acquired makes more permits. It makes a
// semaphore that does not exist. It is never sent again: ErrUncertain says that the reply was
// lost, and that the permits may be back or not. It needs a ctx that has not ended. It sends one
// EVALSHA.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "release", int64(n), 1, func(c *transport.Call) {
		s.kind.scripts.Add(c, int64(n))
		c.Urgent = true
	})
	return err
}

// Add makes n permits more available, or fewer when n is below 0, also fewer than none: a
// semaphore that lacks permits gives some out again when as many have come back. Otherwise as
// [Semaphore.Release]. It keeps the time to live, which Redisson's addPermits drops.
func (s *Semaphore) Add(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "add", int64(n), -maxCount, func(c *transport.Call) { s.kind.scripts.Add(c, int64(n)) })
	return err
}

// Drain takes all permits that are available and returns how many those were, below 0 when the
// semaphore lacked some, which it does not any more. Errors as [Semaphore.Release]. It keeps the
// time to live, which Redisson's drainPermits drops. It sends one EVALSHA.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	answer, err := s.ask(ctx, "drain", 0, 0, s.kind.scripts.Drain)
	if err != nil {
		return 0, err
	}
	n, err := reply.Number(answer)
	return int(n), failed("drain", s.name, err)
}

// TrySet makes the semaphore with n permits, 0 to 2^31-1, unless it exists, and reports whether
// it did. With a ttl above 0, of at least 1 ms, it ends after that, whatever is taken of it then.
// Errors as [Semaphore.Release]; it may be repeated. It sends one EVALSHA.
func (s *Semaphore) TrySet(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	const op = "try-set"
	var ms int64
	if ttl != 0 {
		var err error
		if ms, err = limits.Lease(ttl); err != nil {
			return false, failed(op, s.name, err)
		}
	}
	answer, err := s.ask(ctx, op, int64(n), 0, func(c *transport.Call) { s.kind.scripts.TrySet(c, int64(n), ms) })
	if err != nil {
		return false, err
	}
	made, err := reply.Exists(answer)
	return made, failed(op, s.name, err)
}

// Available returns how many permits are available, 0 for a semaphore that does not exist. It
// sends GET.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	answer, err := s.ask(ctx, "available", 0, 0, func(c *transport.Call) {
		c.Command, c.NumKeys = "GET", 1
		c.Args = append(c.Args, s.kind.key)
	})
	if err != nil {
		return 0, err
	}
	n, err := reply.Count(answer)
	return int(n), failed("available", s.name, err)
}

// ask runs a call about n permits. It is sent again only when it certainly did not run.
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

// counter is what is asked of the server about n permits of a semaphore that only counts. It is
// safe for concurrent use.
type counter struct {
	key, channel string
	scripts      luasrc.Counter
	n            int64
}

func newCounter(e *engine.Engine, mapped string) counter {
	channel := codec.SemaphoreChannel(mapped)
	return counter{mapped, channel, luasrc.Counter{Key: mapped, Channel: channel, Publish: e.Publish()}, 0}
}

func (*counter) Name() string  { return "counter" }
func (k *counter) Key() string { return k.key }

// Channel is part of acquire.Waitable. All waiters share one.
func (k *counter) Channel(any) string                            { return k.channel }
func (k *counter) Acquire(c *transport.Call, _ *acquire.Request) { k.scripts.Acquire(c, k.n) }

func (*counter) Decode(answer any) (acquire.Outcome, error) {
	taken, err := reply.TakenPermits(answer)
	out := acquire.Outcome{Granted: taken.Granted, TTL: taken.TTL, Available: taken.Available}
	if !taken.Exists {
		out.Hint = errCounterNotSet
	}
	return out, err
}

// claim is what a caller of a counter acquires. Nothing on the server says who has its permits, so
// an attempt whose reply was lost stays open.
type claim struct {
	acquire.BareClaim
	*taking
	request acquire.Request
	late    chan lateReply // the outcome of the last attempt; has room for one

	mu   sync.Mutex // guards left
	left bool       // the caller has returned
}

// lateReply is the outcome of an attempt that was in doubt.
type lateReply struct {
	reply any
	err   error
}

var _ interface {
	acquire.Claim
	acquire.Settler
} = (*claim)(nil)

func (c *claim) Request() *acquire.Request            { return &c.request }
func (*claim) Grant(time.Time, acquire.Outcome) error { return nil }
func (*claim) Disown()                                {}

// InDoubt is part of engine.Resolver: the server cannot tell.
func (*claim) InDoubt() *engine.InDoubt { return nil }

// Late hands the outcome to the caller, or releases permits that were granted after the caller
// had returned.
func (c *claim) Late(answer any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		c.late <- lateReply{answer, err}
		return
	}
	if err != nil {
		return
	}
	if out, err := c.kind.Decode(answer); err == nil && out.Granted {
		c.giveBack()
	}
}

// Settle returns the outcome of an attempt that ended in doubt, and err if there is none: then
// permits that are granted later are released.
func (c *claim) Settle(ctx context.Context, err error) (any, error) {
	if ctx.Err() != nil {
		if out, ok := c.awaitLate(); ok {
			return out.reply, out.err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case out := <-c.late:
		return out.reply, out.err
	default:
		c.left = true
		return nil, err
	}
}

// awaitLate waits a moment for the outcome of an attempt that the end of its context cut short.
func (c *claim) awaitLate() (out lateReply, ok bool) {
	timer := time.NewTimer(acquire.Overdue)
	defer timer.Stop()
	select {
	case out = <-c.late:
		return out, true
	case <-timer.C:
	case <-c.semaphore.engine.Closing():
	}
	return lateReply{}, false
}

// giveBack gives permits back that were taken for a caller that has left, once.
func (c *claim) giveBack() {
	e, name, scripts, n := c.semaphore.engine, c.semaphore.name, c.kind.scripts, c.n
	e.Join() // Close waits for it: the permits would be away for ever
	give := func() {
		defer e.Leave()
		if err := addUntilRun(e, &scripts, n); err != nil {
			e.Logger.Warn("redlatch: permits of a caller that has left may not be back", "semaphore", name, "permits", n, "error", err)
		}
	}
	if !e.Go(give) {
		e.Leave()
		e.Logger.Warn("redlatch: closed before the permits of a caller that has left were given back", "semaphore", name, "permits", n)
	}
}

// addUntilRun makes n permits more available. It is sent again for one lease, as long as it certainly
// did not run.
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
