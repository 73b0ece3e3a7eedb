package rmultilock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// batch acquires plain locks in one slot, all or none, on the caller's goroutine. The wait loop
// sees one lock, with the channel of the member that blocked the last attempt.
type batch struct {
	acquire.Acquisition
	*taking
	locks   []*hold.Lock
	scripts luasrc.All
	blocked int // index of the member that another owner holds
	claim   *claim
}

func newBatch(t *taking, s *step) *batch {
	b := &batch{taking: t}
	for _, m := range s.members {
		l := hold.Of(m)
		b.locks = append(b.locks, l)
	}
	b.scripts = scriptsOf(b.locks)
	return b
}

func scriptsOf(locks []*hold.Lock) luasrc.All {
	all := luasrc.All{Publish: locks[0].Engine.Publish()}
	for _, l := range locks {
		all.Keys = append(all.Keys, l.Kind.Key())
		all.Channels = append(all.Channels, l.Kind.Channel(nil))
	}
	return all
}

func (b *batch) take(ctx context.Context) error {
	b.Engine, b.Kind, b.Lock, b.Op = b.lock.engine, b, b.locks[0].Name, b.op
	b.Claims, b.Poll = b, b.asked.Poll
	b.Try = b.op == "try-lock"
	b.Start(ctx, len(b.locks))
	if left := b.left(); b.asked.Bounded && left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = b.Within(ctx, left)
		defer cancel()
	} else if b.asked.Bounded {
		b.Try = true
	}
	b.asked.Try = b.Try
	err := b.Run(ctx, b)
	if err != nil {
		b.Lock = b.locks[b.blocked].Name
		b.ObserveFailed(err)
		failed := b.failed(b.Lock, err)
		if errors.Is(err, engine.ErrNotAcquired) {
			failed.Holder, failed.TTL = b.Holder, max(b.TTL, redlatch.NoTTL)
		}
		return failed
	}
	for _, h := range b.claim.holds {
		e := b.Acquired(h.ID())
		e.Name = h.Lock().Name
		h.ObserveAcquired(b.Observed, e)
	}
	return nil
}

func (*batch) Name() string         { return "plain" }
func (b *batch) Key() string        { return b.locks[b.blocked].Kind.Key() }
func (b *batch) Channel(any) string { return b.locks[b.blocked].Kind.Channel(nil) }

func (b *batch) Acquire(c *transport.Call, r *acquire.Request) {
	b.scripts.Acquire(c, r.Owner, r.Lease)
}

func (b *batch) Decode(answer any) (acquire.Outcome, error) {
	if answer == nil {
		return acquire.Outcome{Granted: true}, nil
	}
	parts, _ := answer.([]any)
	if len(parts) != 3 {
		return acquire.Outcome{}, fmt.Errorf("%w: reply for several locks: %T of length %d", transport.ErrBadReply, answer, len(parts))
	}
	number, ok := parts[2].(int64)
	if !ok || number < 1 || number > int64(len(b.locks)) {
		return acquire.Outcome{}, fmt.Errorf("%w: reply for several locks: index %v", transport.ErrBadReply, parts[2])
	}
	b.blocked = int(number) - 1
	if _, isNumber := parts[0].(int64); !isNumber {
		return acquire.Outcome{}, fmt.Errorf("%w: the key %q", redlatch.ErrWrongType, b.locks[b.blocked].Kind.Key())
	}
	_, ttl, err := reply.Acquired(answer)
	r := reply.Refused(answer)
	return acquire.Outcome{TTL: ttl, Holder: r.Holder, Foreign: r.Foreign}, err
}

func (b *batch) LookForeign(c *transport.Call) {
	kind.NewHash(b.locks[b.blocked].Kind.Key()).LookForeign(c)
}

func (*batch) Foreign(answer any) (field string, foreign bool) {
	return kind.Hash{}.Foreign(answer)
}

func (b *batch) Waiter(*acquire.Acquisition) acquire.Waiter {
	return &waiter{Waiter: acquire.Alone(), batch: b}
}

type waiter struct {
	acquire.Waiter
	batch   *batch
	listens bool
	to      int
}

func (w *waiter) Listen(ctx context.Context, a *acquire.Acquisition) error {
	if w.listens && w.to != w.batch.blocked {
		w.Leave(a)
		w.Waiter = acquire.Alone()
	}
	w.listens, w.to = true, w.batch.blocked
	return w.Waiter.Listen(ctx, a)
}

// Sleep returns 0 if the caller is now blocked by a different lock, so that it subscribes to that
// lock's channel first.
func (w *waiter) Sleep(nap, _ time.Duration) time.Duration {
	if w.listens && w.to != w.batch.blocked {
		return 0
	}
	return nap
}

func (b *batch) Claim(acquire.Reusable) acquire.Claim {
	owner := b.Engine.NextOwner()
	c := &claim{batch: b, owner: owner, holds: make([]*hold.Hold, len(b.locks))}
	c.request = acquire.Request{Owner: owner.String(), Lease: b.asked.TTLArg, Try: b.Try}
	holds := make([]hold.Hold, len(b.locks))
	for i, l := range b.locks {
		c.holds[i] = &holds[i]
		c.holds[i].Init(l, &b.asked, owner, c.request.Owner)
	}
	b.claim = c
	return c
}

// claim contains the holds of all locks, which have the same owner. takeAll waits for replicas.
type claim struct {
	acquire.BareClaim
	batch   *batch
	owner   codec.Owner
	request acquire.Request
	holds   []*hold.Hold
}

var _ acquire.Claim = (*claim)(nil)

func (c *claim) ID() codec.Owner           { return c.owner }
func (c *claim) Request() *acquire.Request { return &c.request }

func (c *claim) Grant(sent time.Time, o acquire.Outcome) error {
	for i, h := range c.holds {
		if err := h.Grant(sent, o); err != nil {
			c.Disown() // including the earlier ones, whose unlock then finds them released
			if i > 0 {
				c.batch.hold.group.Add(c.holds[:i]...)
			}
			return err
		}
	}
	c.batch.hold.group.Add(c.holds...)
	return nil
}

func (c *claim) Disown() { c.batch.Engine.Resolve(c.undo()) }

func (c *claim) undo() *engine.InDoubt {
	return undo(c.batch.locks, &c.batch.scripts, c.request.Owner, c.batch.asked.TTL)
}

func (c *claim) Late(answer any, err error) *engine.InDoubt {
	if refused := err == nil && answer != nil; refused || errors.Is(err, engine.ErrNotSent) {
		return nil
	}
	return c.undo()
}

// undo returns a release in the background, which is retried for one lease.
func undo(locks []*hold.Lock, scripts *luasrc.All, owner any, lease time.Duration) *engine.InDoubt {
	text, _ := owner.(string) // it is always a string
	d := &engine.InDoubt{Name: locks[0].Name, Owner: text, Lease: lease}
	d.Undo = func(run engine.Run) (bool, error) {
		answer, err := run(func(c *transport.Call) { scripts.Release(c, owner); c.Urgent = true })
		if err != nil {
			return false, err
		}
		freed, err := freedOf(answer, len(locks))
		for _, f := range freed {
			if f {
				return true, err
			}
		}
		return false, err
	}
	return d
}

// free releases the locks. It retries one call for at most bound, and then in the background.
func free(holds []*hold.Hold, bound time.Duration) []error {
	locks, owner := make([]*hold.Lock, len(holds)), holds[0].ID().String()
	for i, h := range holds {
		locks[i] = h.Lock()
	}
	scripts := scriptsOf(locks)
	freed, open, err := release(locks[0].Engine, &scripts, owner, bound)
	for again, n := err, 1; locks[0].Engine.DeniedPublish(again) && n < len(locks); n++ {
		// Without permission to publish, each call releases only one lock.
		_, _, again = release(locks[0].Engine, &scripts, owner, bound)
	}
	if err != nil && (engine.Passing(err) || errors.Is(err, engine.ErrUncertain)) {
		locks[0].Engine.Resolve(undo(locks, &scripts, owner, lastsOf(holds)))
	}
	errs := make([]error, len(locks))
	for i := range errs {
		switch {
		case err != nil:
			errs[i] = err
		case !freed[i] && !open: // if open, an earlier call may have freed it
			errs[i] = engine.ErrLost
		}
	}
	return errs
}

// lastsOf returns the longest time that any of the locks, including re-entries, may last on the
// server.
func lastsOf(holds []*hold.Hold) (most time.Duration) {
	for _, h := range holds {
		most = max(most, h.Lasts())
	}
	return most
}

// open reports whether an earlier attempt may have run.
func release(e *engine.Engine, scripts *luasrc.All, owner any, bound time.Duration) (freed []bool, open bool, err error) {
	open, err = e.Persist(bound, func(rest time.Duration) error {
		at := e.Attempt()
		scripts.Release(&at.Call, owner)
		at.Call.Urgent = true
		answer, err := at.RunFor(max(rest, 0), nil)
		if err == nil {
			freed, err = freedOf(answer, len(scripts.Keys))
		}
		return err
	})
	return freed, open, err
}

func freedOf(answer any, n int) ([]bool, error) {
	parts, _ := answer.([]any)
	if len(parts) != n {
		return nil, fmt.Errorf("%w: a release of %d locks: %T of %d", transport.ErrBadReply, n, answer, len(parts))
	}
	freed := make([]bool, n)
	for i, p := range parts {
		if p != nil && p != int64(1) {
			return nil, fmt.Errorf("%w: a release of several locks: %T", transport.ErrBadReply, p)
		}
		freed[i] = p != nil
	}
	return freed, nil
}
