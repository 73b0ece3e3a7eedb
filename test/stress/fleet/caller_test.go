//go:build linux

package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	inner "github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// process is a client and its callers.
type process struct {
	fleet   *fleet
	name    string
	plan    client
	network *network
	ctx     context.Context // canceled when it is killed
	kill    context.CancelFunc

	mu      sync.Mutex // guards the fields below
	client  *redlatch.Client
	old     []*redlatch.Client
	holds   map[*held]struct{} // holds that the caller considers valid
	stopped bool               // whether it was killed, so that it no longer writes history
}

type held struct {
	*rlock.Hold
	id, label string // label is the owner and a number, because owners are reused
	key       int
}

// write appends to the history unless the process was killed.
func (p *process) write(r history.Record) {
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		return
	}
	r.P = p.name
	p.fleet.write(r)
}

// open creates a client and makes it the current one.
func (p *process) open() error {
	options := []redlatch.Option{
		redlatch.WithCommandTimeout(commandTimeout), redlatch.WithWatchdogTimeout(p.fleet.shortestLease()),
		redlatch.WithDeadWaiterGrace(grace), redlatch.WithPollCap(pollCap),
	}
	if p.plan.Ahead != 0 {
		options = append(options, redlatch.WithServerTime())
	}
	c, err := redlatch.New(p.network.dial, options...)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.client != nil {
		p.old = append(p.old, p.client)
	}
	p.client = c
	p.mu.Unlock()
	p.write(history.Record{Kind: history.Life, Owner: c.ID().String()})
	return nil
}

func (p *process) current() *redlatch.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// close closes a client and records whether it returned in time.
func (p *process) close(op string, c *redlatch.Client, wait time.Duration, f func(*redlatch.Client) error) {
	id := p.fleet.nextID()
	p.write(history.Record{Kind: history.Call, ID: id, Op: op, Wait: wait + overhead})
	err := f(c)
	p.write(history.Record{Kind: history.Return, ID: id, Err: worker.Class(err)})
	p.write(history.Record{Kind: history.LifeOver, Owner: c.ID().String()})
}

// watch follows a hold until it is lost or removed from p.holds.
func (p *process) watch(h *held) {
	p.mu.Lock()
	p.holds[h] = struct{}{}
	p.mu.Unlock()
	p.valid(h)
	// A holder that uses the hold's context considers itself the holder until this moment.
	context.AfterFunc(h.Context(context.Background()), func() {
		if !p.unwatch(h) {
			return // released
		}
		now := p.fleet.now()
		p.write(history.Record{T: now - 1, Kind: history.Valid, Hold: h.id, Until: now})
		p.write(history.Record{T: now, Kind: history.Over, Hold: h.id, Until: now - 1, Err: worker.Class(h.Err())})
	})
}

// valid samples a hold.
func (p *process) valid(h *held) {
	now := p.fleet.now()
	if h.Err() == nil {
		p.write(history.Record{T: now, Kind: history.Valid, Hold: h.id, Until: now + h.Remaining()})
	}
}

// unwatch stops watching h and reports whether it was watched.
func (p *process) unwatch(h *held) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, watched := p.holds[h]
	delete(p.holds, h)
	return watched
}

// caller runs its steps.
type caller struct {
	*process
	steps []step
}

func (c *caller) run() {
	for _, s := range c.steps {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(s.Rest.d()):
		}
		if h := c.take(s); h != nil {
			c.use(s, h, s.Inner)
			c.leave(s, h)
		}
	}
}

// lock returns the lock of a step for the current client.
func (c *caller) lock(s step) *rlock.Lock {
	k, name := c.fleet.plan.Keys[s.Key], keyName(s.Key)
	return worker.Key{Name: name, Fair: k.Fair, Fenced: k.Fenced}.Lock(c.current(), false)
}

// lockOf returns the lock of a hold for the hold's own client.
func lockOf(h *held) *rlock.Lock {
	l := &rlock.Lock{}
	*inner.Of(l) = *inner.Of(h).Lock()
	return l
}

func keyName(i int) string { return fmt.Sprintf("lock-%d", i) }

// take acquires the lock as described by the step. It returns nil if that fails.
func (c *caller) take(s step) *held {
	l, options := c.lock(s), c.options(s)
	switch s.Call {
	case callTry:
		return c.call(s, "try-lock", overhead, nil, func(ctx context.Context) (*rlock.Hold, error) { return l.TryLock(ctx, options...) })
	case callWait:
		options = append(options, rlock.WithWait(s.Limit.d()))
		return c.call(s, "lock", s.Limit.d()+overhead, nil, func(ctx context.Context) (*rlock.Hold, error) { return l.Lock(ctx, options...) })
	case callCancel:
		return c.call(s, "lock", s.Limit.d()+overhead, nil, func(ctx context.Context) (*rlock.Hold, error) {
			ctx, cancel := context.WithTimeout(ctx, s.Limit.d())
			defer cancel()
			return l.Lock(ctx, options...)
		})
	case callResume:
		if h, given := c.fleet.handed(s.Key); given {
			return c.resume(s, l, h)
		}
	case callLock:
	}
	return c.call(s, "lock", forever, nil, func(ctx context.Context) (*rlock.Hold, error) { return l.Lock(ctx, options...) })
}

func (c *caller) resume(s step, l *rlock.Lock, given *held) *held {
	owner := given.Owner()
	h := c.call(s, "resume", overhead, nil, func(ctx context.Context) (*rlock.Hold, error) {
		return l.Resume(ctx, owner, rlock.WithWatchdog(c.lease(s)))
	})
	return h
}

func (c *caller) lease(s step) time.Duration { return c.fleet.plan.Keys[s.Key].Lease.d() }

func (c *caller) options(s step) []rlock.Option {
	switch s.Terms {
	case termsFixed:
		return []rlock.Option{rlock.WithLease(c.lease(s))}
	case termsMaxHold:
		return []rlock.Option{rlock.WithWatchdog(c.lease(s)), rlock.WithMaxHold(s.Limit.d())}
	case termsRenewed:
	}
	return []rlock.Option{rlock.WithWatchdog(c.lease(s))}
}

// call calls f, which acquires the lock, and records the call.
func (c *caller) call(s step, op string, wait time.Duration, outer *held, f func(context.Context) (*rlock.Hold, error)) *held {
	id, ctx := c.fleet.nextID(), c.ctx
	r := history.Record{Kind: history.Call, ID: id, Op: op, Key: keyName(s.Key), Wait: wait}
	if outer != nil {
		r.Hold, ctx = outer.id, outer.Context(ctx)
	}
	c.write(r)
	hold, err := f(ctx)
	c.write(history.Record{Kind: history.Return, ID: id, Err: worker.Class(err)})
	if err != nil {
		return nil
	}
	h := &held{Hold: hold, id: id, key: s.Key}
	h.label = c.fleet.label(op, outer, h)
	lease := c.lease(s)
	g := history.Record{
		Kind: history.Grant, ID: id, Hold: id, Key: keyName(s.Key), Owner: h.label, Lease: lease,
		Margin: margin(lease), Renewed: s.Terms != termsFixed || op == "resume" || outer != nil, Token: inner.Of(hold).Token(),
	}
	if outer != nil {
		g.Outer = outer.id
	}
	c.write(g)
	c.watch(h)
	return h
}

// use does the step's work, then reenters the lock with the proof of h and does the work again.
func (c *caller) use(s step, h *held, inner int) {
	c.fleet.audit(c.process, h)
	select {
	case <-h.Context(c.ctx).Done():
	case <-time.After(s.Work.d()):
		c.fleet.audit(c.process, h)
	}
	if inner == 0 {
		return
	}
	l := lockOf(h) // the proof is only valid for the hold's own client
	in := c.call(s, "lock", overhead, h, func(ctx context.Context) (*rlock.Hold, error) {
		return l.Lock(ctx, rlock.WithWatchdog(c.lease(s)))
	})
	if in != nil {
		c.use(s, in, inner-1)
		c.unlock(in)
	}
}

// leave releases the hold.
func (c *caller) leave(s step, h *held) {
	switch s.Leave {
	case leaveExpire:
		if c.give("let-expire", h, h.LetExpire) == nil {
			return
		}
	case leaveHandOver:
		if c.give("hand-over", h, func() error { _, err := h.HandOver(); return err }) == nil {
			c.fleet.handOver(h)
			return
		}
	case leaveUnlock:
	}
	c.unlock(h)
}

func (c *caller) unlock(h *held) { _ = c.give("unlock", h, h.Unlock) } // the error is recorded in the history

// give calls f, which ends the hold, and records the call. If f fails, the hold remains, unless f is an unlock.
func (c *caller) give(op string, h *held, f func() error) error {
	live := c.unwatch(h)
	if live {
		c.valid(h)
	}
	c.write(history.Record{Kind: history.Give, Hold: h.id, Op: op})
	id := c.fleet.nextID()
	c.write(history.Record{Kind: history.Call, ID: id, Op: op, Key: keyName(h.key), Hold: h.id, Wait: overhead})
	err := f()
	c.write(history.Record{Kind: history.Return, ID: id, Err: worker.Class(err)})
	if err != nil && op != "unlock" && h.Err() == nil {
		c.write(history.Record{Kind: history.Kept, Hold: h.id})
		c.watch(h)
	}
	return err
}
