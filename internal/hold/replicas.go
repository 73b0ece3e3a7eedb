package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Values of Hold.known: whether a hold was returned to its caller and reported.
const (
	reported     uint32 = iota // returned and reported, or not observed, so its end is reported
	known                      // known to the caller but not yet reported
	unknown                    // not yet known, because the caller is waiting for replicas
	overBefore                 // ended while unknown
	overKnown                  // ended while known
	endTold                    // its end was reported
	releaseWaits               // Unlock has returned while the end was being reported
)

// Replicated implements acquire.Claim.
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

func (h *Hold) replicate() *engine.Replication {
	o := h.ownership
	kind := o.lock.Kind
	return o.lock.Engine.Replicate(func(c *transport.Call) { kind.Replicate(c, o.final.Owner) }, kind.Replicated)
}

func (h *Hold) becomeKnown() error {
	if h.Err() == nil && h.known.CompareAndSwap(unknown, h.whenKnown()) {
		return nil
	}
	return fmt.Errorf("%w: by then it had expired or been removed", engine.ErrNotReplicated)
}

// AwaitReplicas waits until enough replicas have the locks of all holds that were acquired with Terms.Several, and then
// reports the holds. On error, it returns the hold that failed, and the caller must release all of them; see
// [Hold.ObserveGivenBack].
func AwaitReplicas(ctx context.Context, holds []*Hold) (*Hold, error) {
	holds = slices.DeleteFunc(slices.Clone(holds), func(h *Hold) bool { return h.deferred == nil })
	all := make([]*engine.Replication, len(holds))
	for i, h := range holds {
		all[i] = h.replicate()
	}
	for i, h := range holds {
		if err := all[i].Wait(ctx); err != nil {
			for _, other := range all[i+1:] {
				other.Abandon()
			}
			return h, err
		}
	}
	for _, h := range holds {
		if err := h.becomeKnown(); err != nil {
			return h, err
		}
		if tell := h.ownership.lock.Engine.Hooks.Acquired; tell != nil {
			h.grantReported(tell(h.observed.of, *h.deferred))
		}
	}
	return nil, nil
}

// ObserveAcquired reports the acquisition either now or, with Terms.Several, once it has been replicated.
func (h *Hold) ObserveAcquired(ctx context.Context, e engine.Event) {
	tell := h.ownership.lock.Engine.Hooks.Acquired
	switch {
	case tell == nil:
	case h.deferred != nil:
		h.observed.of, *h.deferred = ctx, e
	default:
		engine.OrElse(func() { h.grantReported(tell(ctx, e)) }, func() { h.revoke(false) })
	}
}

// ObserveGivenBack reports that a call failed with err before its hold was replicated.
func (h *Hold) ObserveGivenBack(err error, wait time.Duration) {
	tell := h.ownership.lock.Engine.Hooks.NotAcquired
	if tell == nil || h.deferred == nil || h.wasReported() {
		return
	}
	e := *h.deferred
	e.Took, e.Err = wait, err
	tell(h.observed.of, e)
}

// revoke releases a hold that no caller has, or whose caller the observer has ended. It waits for up to one command
// timeout if wait is set, and otherwise continues in the background.
func (h *Hold) revoke(wait bool) {
	o := h.ownership
	e := o.lock.Engine
	e.Watchdog.Remove(&h.lease)
	h.end(endGiven)
	left := o.remove(h)
	o.closeSubscription()
	if left < 0 {
		return // the hold was lost, so the lock is already being freed
	}
	release := func() {
		if err := h.lower(left, e.Command); err != nil && !errors.Is(err, engine.ErrLost) {
			h.notGivenBack(err)
		}
	}
	if wait {
		release()
		return
	}
	if !e.GoBeforeClose(release) {
		h.notGivenBack(engine.ErrClosed)
		o.passTurn(false)
	}
}

func (h *Hold) notGivenBack(err error) {
	o := h.ownership
	o.lock.Engine.Logger.Warn("redlatch: cannot release an abandoned lock: it will expire",
		"lock", o.lock.Name, "owner", o.final.Owner, "error", err)
}
