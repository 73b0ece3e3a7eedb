package kind

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Fair is the kind of the fair lock: Redisson's getFairLock. A kind that differs in how the
// lock is taken embeds it. It is safe for concurrent use.
type Fair struct {
	Hash
	// Queues are the client's, for the time of day, and for owners that leave.
	Queues *fairqueue.Queues

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
} = (*Fair)(nil)

// NewFair returns the kind of the fair lock at a key.
func NewFair(e *engine.Engine, mapped string) *Fair {
	return &Fair{NewHash(mapped), fairqueue.Of(e), e, luasrc.Fair{
		Key: mapped, Queue: codec.QueueKey(mapped), Timeouts: codec.TimeoutKey(mapped), Channel: codec.LockChannel(mapped),
		Publish: e.Publish(),
	}}
}

// Name is part of acquire.Waitable.
func (f *Fair) Name() string { return "fair" }

// Family is part of hold.Kind.
func (f *Fair) Family() string { return "fair" }

// Channel is part of acquire.Waitable. Each waiter has its own.
func (f *Fair) Channel(owner any) string {
	text, _ := owner.(string) // always one
	return codec.OwnerChannel(f.Key(), text)
}

// Acquire is part of acquire.Waitable.
func (f *Fair) Acquire(c *transport.Call, r *acquire.Request) {
	fill := f.scripts.Acquire
	if r.Try {
		fill = f.scripts.Try
	}
	fill(c, f.Queues.NowMillis(), r.Owner, r.Wait, r.Lease)
}

// Reenter is part of hold.Reentrant.
func (f *Fair) Reenter(c *transport.Call, r *acquire.Request) {
	f.scripts.Reenter(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (f *Fair) Release(c *transport.Call, r *acquire.Request) {
	f.scripts.Release(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (f *Fair) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	f.scripts.ReleaseShared(c, latch, f.Queues.NowMillis(), r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (f *Fair) ForceRelease(c *transport.Call) {
	f.scripts.ForceRelease(c, f.Queues.NowMillis())
}

// inspected is how many waiters' listeners an inspection counts.
const inspected = 64

// The subcommands of PUBSUB that count the listeners of what scripts publish, boxed once.
var numSub, shardNumSub any = "NUMSUB", "SHARDNUMSUB"

// Inspect is part of hold.Inspectable.
func (f *Fair) Inspect(c *transport.Call, first, last int64) {
	count := numSub
	if f.engine.Publish() == any("SPUBLISH") {
		count = shardNumSub
	}
	f.scripts.Inspect(c, inspected, count, first, last)
}

// GiveUp is part of fairqueue.Kind.
func (f *Fair) GiveUp(c *transport.Call, r *acquire.Request) {
	f.scripts.GiveUp(c, f.Queues.NowMillis(), r.Owner, r.Wait)
}

// Dequeue is part of hold.Queueing.
func (f *Fair) Dequeue(lock string, r *acquire.Request) error { return f.Queues.Dequeue(f, lock, r) }

// Leave is part of hold.Queueing.
func (f *Fair) Leave(lock string, r *acquire.Request) { f.Queues.Leave(f, lock, r) }

// Lasts is part of hold.Queueing.
func (f *Fair) Lasts(r *acquire.Request) time.Duration { return f.Queues.Lasts(r) }

// Prepare is part of hold.Preparing: the scripts are given the time.
func (f *Fair) Prepare(ctx context.Context) { f.Queues.Prepare(ctx) }

// keep is for how long a heartbeat keeps a place, in milliseconds: three heartbeats,
// so that a process may miss two.
var keep any = int64(15_000)

// Heartbeat is part of fairqueue.Kind.
func (f *Fair) Heartbeat(c *transport.Call, window int, waiters []fairqueue.Waiter, others []reply.Other) {
	f.scripts.Heartbeat(c, f.Queues.NowMillis(), luasrc.Beat{
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
func (f *Fair) Evict(c *transport.Call, dead []reply.Place) {
	f.scripts.Evict(c, f.Queues.NowMillis(), keep, dead)
}

// Nudge is part of fairqueue.Kind.
func (f *Fair) Nudge(c *transport.Call, owner string) { f.scripts.Nudge(c, owner) }
