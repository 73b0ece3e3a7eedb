package rsemaphore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

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

// Name is part of acquire.Waitable.
func (*counter) Name() string { return "counter" }

// Key is part of acquire.Waitable.
func (k *counter) Key() string { return k.key }

// Channel is part of acquire.Waitable. All waiters share one.
func (k *counter) Channel(any) string { return k.channel }

// Acquire is part of acquire.Waitable.
func (k *counter) Acquire(c *transport.Call, _ *acquire.Request) { k.scripts.Acquire(c, k.n) }

// Decode is part of acquire.Waitable.
func (*counter) Decode(answer any) (acquire.Outcome, error) {
	taken, err := reply.TakenPermits(answer)
	return acquire.Outcome{Granted: taken.Granted, TTL: taken.TTL, Available: taken.Available}, err
}

// claim is what a caller of a counter acquires: nothing that anything on the server tells of. So
// an attempt without a reply stays open, and nothing is undone that may not have been done.
type claim struct {
	acquire.BareClaim
	*taking
	request acquire.Request
	late    chan bool // whether a late reply has granted it; has room for one

	mu   sync.Mutex // guards left
	left bool       // the caller does not wait for the late reply any more
}

var _ acquire.Claim = (*claim)(nil)

// Request is part of acquire.Claim.
func (c *claim) Request() *acquire.Request { return &c.request }

// Grant is part of acquire.Claim.
func (*claim) Grant(time.Time, acquire.Outcome) error { return nil }

// Disown is part of acquire.Claim.
func (*claim) Disown() {}

// InDoubt is part of engine.Resolver: nothing on the server can tell.
func (*claim) InDoubt() *engine.InDoubt { return nil }

// Late is part of engine.Resolver.
func (c *claim) Late(answer any, err error) {
	granted := false
	switch out, decodeErr := c.kind.Decode(answer); {
	case errors.Is(err, engine.ErrNotSent):
	case err != nil || decodeErr != nil:
		return // it stays open
	default:
		granted = out.Granted
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.left:
		c.late <- granted
	case granted:
		c.giveBack()
	}
}

// settle returns what a call is to return whose attempt has no reply yet, for err. Where the end
// of ctx has cut the attempt short, it waits a moment for the reply. Permits that come later are
// given back.
func (c *claim) settle(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		timer := time.NewTimer(acquire.Overdue)
		defer timer.Stop()
		select {
		case granted := <-c.late:
			return settled(ctx, granted)
		case <-timer.C:
		case <-c.semaphore.engine.Closing():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	select {
	case granted := <-c.late:
		return settled(ctx, granted)
	default:
		return err
	}
}

// settled returns what an attempt comes to whose late reply says whether it was granted.
func settled(ctx context.Context, granted bool) error {
	if granted {
		return nil
	}
	return engine.GaveUp(ctx)
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
		again := engine.Passing(err) || transport.IsCode(err, "OOM") // at its first write
		if !again || time.Since(began) >= e.Lease || !e.Wait(pause.Next()) {
			return err
		}
	}
}
