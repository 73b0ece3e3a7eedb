package rfencedlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// fair is the kind of the fair lock with tokens. All but the grants is as for the fair lock.
type fair struct {
	*counter
	*kind.Fair
	grants luasrc.FencedFair
}

var _ interface {
	hold.Kind
	hold.Fencing
	hold.Shareable
	hold.Forcible
	hold.Inspectable
	hold.Replicable
	hold.Queueing
	hold.Preparing
	fairqueue.Kind
} = (*fair)(nil)

// makeFair returns the hold.Make of the fair lock with tokens.
func makeFair(n counter) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		n.key = codec.TokenKey(mapped)
		f := &fair{&n, kind.NewFair(e, mapped), luasrc.FencedFair{
			Key: mapped, Queue: codec.QueueKey(mapped), Timeouts: codec.TimeoutKey(mapped), Counter: n.key,
			Channel: codec.LockChannel(mapped), Least: n.least,
		}}
		return f, f.Queues.Strategy(f)
	}
}

func (f *fair) Name() string   { return "fair-fenced" }
func (f *fair) Family() string { return "fair-fenced" }

func (f *fair) Acquire(c *transport.Call, r *acquire.Request) {
	fill := f.grants.Acquire
	if r.Try {
		fill = f.grants.Try
	}
	fill(c, f.Queues.NowMillis(), r.Owner, r.Wait, r.Lease)
}

func (f *fair) Decode(answer any) (acquire.Outcome, error) {
	return f.decode(f.Hash, answer)
}

func (f *fair) Reenter(c *transport.Call, r *acquire.Request) {
	f.grants.Reenter(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

func (f *fair) Dequeue(lock string, r *acquire.Request) error { return f.Queues.Dequeue(f, lock, r) }
func (f *fair) Leave(lock string, r *acquire.Request)         { f.Queues.Leave(f, lock, r) }
