package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Whether the caller of a hold knows of it, while replicas are waited for, and the observer.
const (
	reported     uint32 = iota // or there is no observer: its end is reported
	known                      // enough replicas have it, or none is waited for: the observer is next
	unknown                    // not yet
	overBefore                 // it was over before its caller knew of it
	overKnown                  // it was over before the observer did
	endTold                    // the observer has heard of its end
	releaseWaits               // Unlock has returned, and the observer still hears of the end
)

// deferred is what is done once enough replicas have the lock of a hold whose caller waits for
// several, see [AwaitReplicas].
type deferred struct{ acquired engine.Acquired }

// Replicated is part of acquire.Claim. Until it returns the caller does not know of the hold,
// which is renewed if that takes long.
func (h *Hold) Replicated(ctx context.Context) error {
	if h.deferred != nil {
		return nil
	}
	e := h.ownership.lock.Engine
	err := h.replicate().Wait(ctx)
	if err == nil {
		err = h.becomeKnown()
	}
	if err != nil {
		h.revoke(ctx.Err() == nil && !e.IsClosing())
	}
	return err
}

// replicate begins to wait for replicas.
func (h *Hold) replicate() *engine.Replication {
	o := h.ownership
	kind, can := o.lock.Kind.(Replicable)
	if !can {
		return &engine.Replication{}
	}
	return o.lock.Engine.Replicate(func(c *transport.Call) { kind.Replicate(c, o.final.Owner) }, kind.Replicated)
}

// becomeKnown says that enough replicas have the lock. It returns an error when the hold was over
// before.
func (h *Hold) becomeKnown() error {
	if h.Err() == nil && h.known.CompareAndSwap(unknown, h.whenKnown()) {
		return nil
	}
	return fmt.Errorf("%w: its lease was over, or it was taken away, by then", engine.ErrNotReplicated)
}

// AwaitReplicas waits until enough replicas have the locks of all those holds whose terms say that
// their caller waits: for all at once. Then it tells the observer of them. With an error it returns
// the hold that this is about; the caller gives all of them up, see [Hold.ObserveGivenBack].
func AwaitReplicas(ctx context.Context, holds []*Hold) (*Hold, error) {
	all := make([]*engine.Replication, len(holds))
	for i, h := range holds {
		if h.deferred != nil {
			all[i] = h.replicate()
		}
	}
	for i, h := range holds {
		if all[i] == nil {
			continue
		}
		if err := all[i].Wait(ctx); err != nil {
			for _, other := range all[i+1:] {
				other.Abandon()
			}
			return h, err
		}
	}
	for _, h := range holds {
		if h.deferred == nil {
			continue
		}
		if err := h.becomeKnown(); err != nil {
			return h, err
		}
		if tell := h.ownership.lock.Engine.Hooks.Acquired; tell != nil {
			h.Reported(tell(h.observed.of, h.deferred.acquired))
		}
	}
	return nil, nil
}

// ObserveAcquired tells the observer, if there is one, that the lock was acquired, now or when
// enough replicas have it.
func (h *Hold) ObserveAcquired(ctx context.Context, e engine.Acquired) {
	tell := h.ownership.lock.Engine.Hooks.Acquired
	switch {
	case tell == nil:
	case h.deferred != nil:
		h.observed.of, h.deferred.acquired = ctx, e
	default:
		h.Reported(tell(ctx, e))
	}
}

// ObserveGivenBack tells the observer, if there is one and has not heard of the hold, that the call
// ended with err, before enough replicas had all locks.
func (h *Hold) ObserveGivenBack(err error, wait time.Duration) {
	tell := h.ownership.lock.Engine.Hooks.NotAcquired
	if tell == nil || h.deferred == nil || h.wasReported() {
		return
	}
	e := &h.deferred.acquired
	tell(h.observed.of, engine.NotAcquired{Op: e.Op, Name: e.Name, Kind: e.Kind, Wait: wait, Attempts: e.Attempts, Err: err})
}

// revoke gives a hold back that no caller knows of. It waits for that if that is asked for;
// else, and when it takes too long, it goes on in the background.
func (h *Hold) revoke(wait bool) {
	o := h.ownership
	e := o.lock.Engine
	e.Watchdog.Remove(&h.lease)
	h.end(endGiven) // unless something else has ended it
	left := o.remove(h)
	o.closeSubscription()
	if left < 0 {
		return // it was lost, and the lock is being freed
	}
	if wait {
		h.giveBack(left)
		return
	}
	e.Join()
	if !e.Go(func() { defer e.Leave(); h.giveBack(left) }) {
		e.Leave()
		h.notGivenBack(engine.ErrClosed)
		o.passTurn(false)
	}
}

// giveBack brings the count on the server to what is left, and passes the turn on.
func (h *Hold) giveBack(left int) {
	o := h.ownership
	err := o.lower(left, o.lock.Engine.Command, nil)
	if err != nil && !errors.Is(err, engine.ErrLost) {
		h.notGivenBack(err)
	}
}

func (h *Hold) notGivenBack(err error) {
	o := h.ownership
	o.lock.Engine.Logger.Warn("redlatch: releasing an under-replicated lock failed; it will expire",
		"lock", o.lock.Name, "owner", o.final.Owner, "error", err)
}
