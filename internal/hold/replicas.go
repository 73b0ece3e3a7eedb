package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Whether the caller of a hold knows of it, while replicas are waited for, and the observer.
const (
	reported   uint32 = iota // or there is no observer: its end is reported
	known                    // enough replicas have it, or none is waited for: the observer is next
	unknown                  // not yet
	overBefore               // it was over before its caller knew of it
	overKnown                // it was over before the observer did
)

// Replicated is part of acquire.Claim. Until it returns the caller does not know of the hold,
// which is renewed if that takes long.
func (h *Hold) Replicated(ctx context.Context) error {
	o := h.ownership
	e := o.lock.Engine
	err := engine.ErrNotReplicated
	if kind, can := o.lock.Kind.(Replicable); can {
		err = e.AwaitReplicas(ctx, func(c *transport.Call) { kind.Replicate(c, o.final.Owner) }, kind.Replicated)
	}
	if err == nil {
		if h.Err() == nil && h.known.CompareAndSwap(unknown, h.whenKnown()) {
			return nil
		}
		err = fmt.Errorf("%w: its lease was over, or it was taken away, by then", engine.ErrNotReplicated)
	}
	h.revoke(ctx.Err() == nil && !e.IsClosing())
	return err
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
