package rsemaphore

import (
	"context"
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
