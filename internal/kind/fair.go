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
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Fair is the fair lock, Redisson's getFairLock. It is safe for concurrent use.
type Fair struct {
	Hash
	// Queues provide the server's time and remove owners from queues.
	Queues *fairqueue.Queues

	engine  *engine.Engine
	scripts luasrc.Fair
}

var _ interface {
	hold.Kind
	hold.Owning
	hold.Queueing
	fairqueue.Kind
} = (*Fair)(nil)

// NewFair returns the kind for fair locks. If tokens has a counter, each grant comes with a token.
func NewFair(e *engine.Engine, mapped string, tokens luasrc.Tokens) *Fair {
	return &Fair{NewHash(mapped), fairqueue.Of(e), e, luasrc.Fair{
		Key: mapped, Queue: codec.QueueKey(mapped), Timeouts: codec.TimeoutKey(mapped), Channel: codec.LockChannel(mapped),
		Publish: e.Publish(), Tokens: tokens,
	}}
}

// Name implements acquire.Waitable.
func (f *Fair) Name() string { return "fair" }

// Family implements hold.Kind.
func (f *Fair) Family() string { return "fair" }

// Channel implements acquire.Waitable. Each waiter has its own channel.
func (f *Fair) Channel(owner any) string {
	text, _ := owner.(string)
	return protocol.OwnerChannel(f.Key(), text)
}

// Acquire implements acquire.Waitable.
func (f *Fair) Acquire(c *transport.Call, r *acquire.Request) {
	fill := f.scripts.Acquire
	if r.Try {
		fill = f.scripts.Try
	}
	fill(c, f.Queues.NowMillis(), r.Owner, r.Wait, r.Lease)
}

// Reenter implements hold.Owning.
func (f *Fair) Reenter(c *transport.Call, r *acquire.Request) {
	f.scripts.Reenter(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// Release implements hold.Kind.
func (f *Fair) Release(c *transport.Call, r *acquire.Request) {
	f.scripts.Release(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

// ReleaseShared implements hold.Owning.
func (f *Fair) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	f.scripts.ReleaseShared(c, latch, f.Queues.NowMillis(), r.Owner, r.Lease)
}

// ForceRelease implements hold.Owning.
func (f *Fair) ForceRelease(c *transport.Call) {
	f.scripts.ForceRelease(c, f.Queues.NowMillis())
}

// inspected limits the waiters whose subscribers an inspection counts.
const inspected = 64

// The subcommands of PUBSUB that count subscribers, boxed once.
var numSub, shardNumSub any = "NUMSUB", "SHARDNUMSUB"

// Inspect implements hold.Owning.
func (f *Fair) Inspect(c *transport.Call, first, last int64) {
	count := numSub
	if f.engine.Publish() == any("SPUBLISH") {
		count = shardNumSub
	}
	f.scripts.Inspect(c, inspected, count, first, last)
}

// GiveUp implements fairqueue.Kind.
func (f *Fair) GiveUp(c *transport.Call, r *acquire.Request) {
	f.scripts.GiveUp(c, f.Queues.NowMillis(), r.Owner, r.Wait)
}

// Dequeue implements hold.Queueing.
func (f *Fair) Dequeue(lock string, r *acquire.Request) error { return f.Queues.Dequeue(f, lock, r) }

// Leave implements hold.Queueing.
func (f *Fair) Leave(lock string, r *acquire.Request) { f.Queues.Leave(f, lock, r) }

// Lasts implements hold.Queueing.
func (f *Fair) Lasts(r *acquire.Request) time.Duration { return f.Queues.Lasts(r) }

// Prepare implements hold.Kind. The scripts need the time.
func (f *Fair) Prepare(ctx context.Context) { f.Queues.Prepare(ctx) }

// Heartbeat implements fairqueue.Kind.
func (f *Fair) Heartbeat(c *transport.Call, keep time.Duration, window int, waiters []fairqueue.Waiter, others []reply.Other) {
	f.scripts.Heartbeat(c, f.Queues.NowMillis(), luasrc.Beat{
		Keep: keep.Milliseconds(), FairWait: f.engine.FairWaitArg, Window: window, Waiters: len(waiters),
	})
	for _, w := range waiters {
		luasrc.AddWaiter(c, w.Owner, w.Wait)
	}
	for _, o := range others {
		luasrc.AddOther(c, o)
	}
}

// Evict implements fairqueue.Kind.
func (f *Fair) Evict(c *transport.Call, keep time.Duration, dead []reply.Place) {
	f.scripts.Evict(c, f.Queues.NowMillis(), keep.Milliseconds(), dead)
}

// Nudge implements fairqueue.Kind.
func (f *Fair) Nudge(c *transport.Call, owner string) { f.scripts.Nudge(c, owner) }
