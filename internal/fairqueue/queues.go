package fairqueue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/servertime"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock with a queue on the server: an attempt that waits and is refused puts
// its owner there. Each method that is given a call fills a reset one, and each of those calls
// may run more than once.
type Kind interface {
	acquire.Waitable

	// GiveUp fills c with the call that takes the owner out of the queue. Where c is such a
	// call for other owners of the same lock already, it adds this owner.
	GiveUp(c *transport.Call, r *acquire.Request)

	// Heartbeat fills c with the call that keeps the places of the waiters, all of one process,
	// and of the others that live, and reads the first window places and whether the lock is
	// free. A living one that is the first is kept while the lock is held. The reply is that of
	// reply.DecodeBeat.
	Heartbeat(c *transport.Call, window int, waiters []Waiter, others []reply.Other)

	// Evict fills c with the call that takes dead owners out of the front of the queue, in the
	// order given, each while it is the first and has the deadline that a heartbeat has read. If
	// the lock is free, the owner that is first then is woken. The reply is that of
	// reply.DecodeEvicted.
	Evict(c *transport.Call, dead []reply.Place)

	// Nudge fills c with the call that wakes the owner if it is the first in the queue and the
	// lock is free. The reply is that of reply.Nudged.
	Nudge(c *transport.Call, owner string)
}

// Waiter is an owner that waits in a queue. What travels is boxed once.
type Waiter struct {
	// Owner is the owner's text.
	Owner string
	// Wait is the wait with which the owner was queued, in milliseconds, an int64.
	Wait any
}

// lockID is a lock of one kind.
type lockID struct{ kind, key string }

func idOf(k Kind) lockID { return lockID{k.Name(), k.Key()} }

// Queues are the waiters of a client, by lock. All methods are safe for concurrent use.
type Queues struct {
	engine   *engine.Engine
	clock    *servertime.Clock
	groups   engine.Registry[lockID, *Group]
	pool     pool
	dequeuer dequeuer
	health   evictionHealth
	places   atomic.Int64 // of queued waiters, in the order in which they were queued
	callers  sync.Pool    // of *caller
}

var slot = engine.Slot[*Queues]{Make: NewQueues, Close: func(qs *Queues) { qs.pool.close() }}

// Of returns the queues of an engine's client.
func Of(e *engine.Engine) *Queues { return slot.Of(e) }

// NewQueues returns the queues of an engine's client.
func NewQueues(e *engine.Engine) *Queues {
	qs := &Queues{engine: e, clock: servertime.Of(e)}
	qs.pool.engine, qs.dequeuer.engine = e, e
	return qs
}

// Strategy returns how callers wait for one lock. All locks of one name and kind have the same
// group.
func (qs *Queues) Strategy(k Kind) acquire.Strategy { return &strategy{queues: qs, kind: k} }

// NowMillis returns the time that scripts are given, in milliseconds since 1970.
func (qs *Queues) NowMillis() int64 { return qs.clock.NowMillis() }

// Prepare sees to it that the time is known.
func (qs *Queues) Prepare(ctx context.Context) { qs.clock.Keep(ctx) }

// Lasts returns for how long at most the place of r can block others.
func (qs *Queues) Lasts(r *acquire.Request) time.Duration { return qs.dequeuer.lasts(r) }

// Dequeue takes the owner of r, which waits no more for the lock called name, out of its queue,
// and waits for the outcome, one command timeout at most. When many leave one queue, they share
// calls.
func (qs *Queues) Dequeue(k Kind, name string, r *acquire.Request) error {
	ended := make(chan error, 1)
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r, tell: func(err error) { ended <- err }})
	late := time.NewTimer(qs.engine.Command)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C: // it may leave later, which does no harm
		return fmt.Errorf("%w: not out of the queue within %v", engine.ErrUncertain, qs.engine.Command)
	}
}

// Leave is like Dequeue, but does not wait, and tries again what goes wrong.
func (qs *Queues) Leave(k Kind, name string, r *acquire.Request) {
	qs.dequeuer.leave(&departure{kind: k, name: name, request: *r})
}
