package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

// ContextObserver is an [Observer] that is notified with the contexts of callers, and also of
// what happens before a call of Lock returns. A client finds out with a type assertion whether
// the observer of [WithObserver] is one.
//
// Its Observe receives [Renewed], [Evicted] and [Reconnected], which belong to no caller;
// every other event goes to ObserveContext, and none to both. It covers all kinds of locks,
// semaphores included. A multi-lock is notified of as the locks that it is made of; those that
// it takes with one script have one Started, in the name of the first, and an Acquired each.
// Latches are not reported.
//
// What [Observer] says of goroutines, of time and of panics holds for ObserveContext, with a
// stronger word on time: it runs inside the call of Lock, Do or Unlock, so that the caller waits
// for it, and for Ended also on the goroutine that renews all leases. An observer that takes
// 10 ms makes each lock 10 ms slower, and one that takes a third of a lease costs holds. It must
// not block: not on the network, not on a channel that may be full. [Client.Stats] and
// [Client.StatsBy] are the only methods of the client that it may call.
//
// The events of one call come one after the other; those of one hold, too, and its Ended comes
// after its Acquired, even when the hold was lost before Lock returned.
type ContextObserver interface {
	Observer
	// ObserveContext receives one event, and returns the context of what follows, which must
	// be ctx or made from ctx; nil stands for ctx. Only values count: the client never waits
	// for a context that was returned here, and the call goes on with its caller's.
	//
	//	event                      ctx                       the context that it returns is for
	//	Started                    the caller's              the events of this call
	//	Attempted, Queued, Woken,  that of Started           nothing
	//	NotAcquired, Gap
	//	Acquired                   that of Started           Ended and Released of this hold
	//	Ended, Released            that of Acquired; it      nothing
	//	                           never ends
	//	DoStarted                  that of the hold          the function of Do, DoEnded
	//	DoEnded                    that of DoStarted         nothing
	//	Opened, Closed             context.Background()      nothing
	ObserveContext(ctx context.Context, event Event) context.Context
}

// Opened says that a client was made, by whichever function. For a [ContextObserver] alone.
type Opened struct {
	// Client is the client. The observer may keep it, and ask for its Stats at any time.
	Client *Client
}

// Closed says that a client was closed, and that none of its events follows. For a
// [ContextObserver] alone.
type Closed struct {
	// Client is the client.
	Client *Client
}

// Started says that a call of Lock, TryLock, Resume, Acquire or TryAcquire has begun. One
// [NotAcquired] or [Acquired] follows, or as many Acquired as Locks says. For a
// [ContextObserver] alone.
type Started struct {
	// Op is "lock", "trylock" or "resume"; of a plain semaphore "acquire" or "try-acquire".
	Op string
	// Name is the lock's name, as the caller gave it; of several the first one's.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Locks is 1, or how many plain locks a multi-lock takes with one script.
	Locks int
}

// Attempted says that an attempt to take a lock did not get it, and which owner has it. The attempt
// that gets it is the [Acquired]. Re-entries and resumptions have none. For a [ContextObserver]
// alone.
type Attempted struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Attempt is its number in the call, from 1.
	Attempt int
	// Took is the time until the reply.
	Took time.Duration
	// Holder is the owner that has the lock, the zero Owner when that is not known.
	Holder Owner
	// TTL is what the holder's lease has left, below 0 when it never ends or is not known.
	TTL time.Duration
	// Err is why there was no answer.
	Err error
}

// Queued says that a call waits from now on: it was refused, or other callers of this client
// come first. It comes once in a call, and again with another position when the queue of a
// fair lock had lost the caller's place. For a [ContextObserver] alone.
type Queued struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Position is the place in the queue of a fair lock, the next one's being 1. It is 0 for
	// other kinds, which have no queue on the server.
	Position int
}

// Woken says that a call that waits was woken, and asks Redis. One that asks because it has
// waited long enough, see [WithPollCap], was not woken. For a [ContextObserver] alone.
type Woken struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// By is "message" for one of the lock's channel, "gap" when messages may have been missed,
	// "turn" when another caller of this client has left or passed the lock on.
	By string
}

// DoStarted says that Do is about to run its function. The context that ObserveContext returns
// is the one that the function gets. For a [ContextObserver] alone.
type DoStarted struct {
	// Name is the lock's name, as the caller gave it; of a multi-lock those of its first locks.
	Name string
	// Kind is the lock's kind, "multi" for a multi-lock.
	Kind string
	// Owner is the hold's, the zero Owner of a multi-lock.
	Owner Owner
}

// DoEnded says that the function of Do has ended. The hold's [Ended] and [Released] follow. For
// a [ContextObserver] alone.
type DoEnded struct {
	// Name is the lock's name, as the caller gave it; of a multi-lock those of its first locks.
	Name string
	// Kind is the lock's kind, "multi" for a multi-lock.
	Kind string
	// Owner is the hold's, the zero Owner of a multi-lock.
	Owner Owner
	// Took is for how long the function ran.
	Took time.Duration
	// Err is what it returned.
	Err error
	// Panicked is true when it did not return: it panicked, or ended its goroutine.
	Panicked bool
}

func (Opened) event()    {}
func (Closed) event()    {}
func (Started) event()   {}
func (Attempted) event() {}
func (Queued) event()    {}
func (Woken) event()     {}
func (DoStarted) event() {}
func (DoEnded) event()   {}

// inContext adds the hooks of an observer that is notified with contexts.
func (c *Client) inContext(h *engine.Hooks, set *settings, in ContextObserver) {
	tell := func(ctx context.Context, e Event) context.Context { return set.tellIn(ctx, in, e) }
	h.Started = func(ctx context.Context, e engine.Started) context.Context { return tell(ctx, Started(e)) }
	h.Attempted = func(ctx context.Context, e engine.Attempted) { tell(ctx, Attempted(e)) }
	h.Queued = func(ctx context.Context, e engine.Queued) { tell(ctx, Queued(e)) }
	h.Woken = func(ctx context.Context, e engine.Woken) { tell(ctx, Woken(e)) }
	h.Acquired = func(ctx context.Context, e engine.Acquired) context.Context { return tell(ctx, Acquired(e)) }
	h.NotAcquired = func(ctx context.Context, e engine.NotAcquired) { tell(ctx, NotAcquired(e)) }
	h.Ended = func(ctx context.Context, e engine.Ended) { tell(ctx, Ended(e)) }
	h.Released = func(ctx context.Context, e engine.Released) { tell(ctx, released(e)) }
	h.DoStarted = func(ctx context.Context, e engine.DoStarted) context.Context { return tell(ctx, DoStarted(e)) }
	h.DoEnded = func(ctx context.Context, e engine.DoEnded) { tell(ctx, DoEnded(e)) }
	h.Gap = func(ctx context.Context, e engine.Gap) { tell(ctx, Gap(e)) }
	h.Closed = func() { tell(context.Background(), Closed{Client: c}) }
}

// tellIn passes an event on, and returns the context of what follows. A panic is logged.
func (set *settings) tellIn(ctx context.Context, in ContextObserver, event Event) (next context.Context) {
	if ctx == nil {
		ctx = context.Background()
	}
	defer func() {
		if next == nil { // also after a panic
			next = ctx
		}
	}()
	defer set.recovered(event)
	return in.ObserveContext(ctx, event)
}
