package rfairlock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hashlock"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// fair is the kind of the fair lock: Redisson's getFairLock.
type fair struct {
	hashlock.Kind
	queues  *fairqueue.Queues // for the time of day, and for owners that leave
	engine  *engine.Engine
	scripts luasrc.Fair
}

var _ interface {
	hold.Kind
	hold.Reentrant
	hold.Shareable
	hold.Forcible
	hold.Inspectable
	hold.Replicable
	hold.Queueing
	hold.Preparing
	fairqueue.Kind
} = (*fair)(nil)

// makeFair is a hold.Make.
func makeFair(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	f := newFair(e, mapped)
	return f, f.queues.Strategy(f)
}

func newFair(e *engine.Engine, mapped string) *fair {
	return &fair{hashlock.New(mapped), fairqueue.Of(e), e, luasrc.Fair{
		Key: mapped, Queue: codec.QueueKey(mapped), Timeouts: codec.TimeoutKey(mapped), Channel: codec.LockChannel(mapped),
		Publish: e.Publish(),
	}}
}

// Name is part of acquire.Waitable.
func (f *fair) Name() string { return "fair" }

// Family is part of hold.Kind.
func (f *fair) Family() string { return "fair" }

// Channel is part of acquire.Waitable. Each waiter has its own.
func (f *fair) Channel(owner any) string {
	text, _ := owner.(string) // always one
	return codec.OwnerChannel(f.Key(), text)
}

// Acquire is part of acquire.Waitable.
func (f *fair) Acquire(c *transport.Call, r *acquire.Request) {
	fill := f.scripts.Acquire
	if r.Try {
		fill = f.scripts.Try
	}
	fill(c, f.queues.NowMillis(), r.Owner, r.Wait, r.Lease)
}

// Reenter is part of hold.Reentrant.
func (f *fair) Reenter(c *transport.Call, r *acquire.Request) {
	f.scripts.Reenter(c, f.queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (f *fair) Release(c *transport.Call, r *acquire.Request) {
	f.scripts.Release(c, f.queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (f *fair) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	f.scripts.ReleaseShared(c, latch, f.queues.NowMillis(), r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (f *fair) ForceRelease(c *transport.Call) {
	f.scripts.ForceRelease(c, f.queues.NowMillis())
}

// inspected is how many waiters' listeners an inspection counts.
const inspected = 64

// The subcommands of PUBSUB that count the listeners of what scripts publish, boxed once.
var numSub, shardNumSub any = "NUMSUB", "SHARDNUMSUB"

// Inspect is part of hold.Inspectable.
func (f *fair) Inspect(c *transport.Call, first, last int64) {
	count := numSub
	if f.engine.Publish() == any("SPUBLISH") {
		count = shardNumSub
	}
	f.scripts.Inspect(c, inspected, count, first, last)
}

// GiveUp is part of hold.Queueing and fairqueue.Kind.
func (f *fair) GiveUp(c *transport.Call, r *acquire.Request) {
	f.scripts.GiveUp(c, f.queues.NowMillis(), r.Owner, r.Wait)
}

// Leave is part of hold.Queueing.
func (f *fair) Leave(lock string, r *acquire.Request) { f.queues.Leave(f, lock, r) }

// Lasts is part of hold.Queueing.
func (f *fair) Lasts() time.Duration { return f.queues.Lasts() }

// Prepare is part of hold.Preparing: the scripts are told the time.
func (f *fair) Prepare(ctx context.Context) { f.queues.Prepare(ctx) }

// keep is for how long a heartbeat keeps a place, in milliseconds: three heartbeats,
// so that a process may miss two.
var keep any = int64(15_000)

// Heartbeat is part of fairqueue.Kind.
func (f *fair) Heartbeat(c *transport.Call, window int, waiters []fairqueue.Waiter, others []reply.Other) {
	f.scripts.Heartbeat(c, f.queues.NowMillis(), luasrc.Beat{
		Keep: keep, FairWait: f.engine.FairWaitArg, Window: window, Waiters: len(waiters),
	})
	for _, w := range waiters {
		luasrc.AddWaiter(c, w.Owner, w.Wait)
	}
	for _, o := range others {
		luasrc.AddOther(c, o)
	}
}

// Evict is part of fairqueue.Kind.
func (f *fair) Evict(c *transport.Call, dead []reply.Place) {
	f.scripts.Evict(c, f.queues.NowMillis(), keep, dead)
}

// Nudge is part of fairqueue.Kind.
func (f *fair) Nudge(c *transport.Call, owner string) { f.scripts.Nudge(c, owner) }
