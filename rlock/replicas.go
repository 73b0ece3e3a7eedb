package rlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
)

// What is known of a hold while replicas are waited for.
const (
	proven     uint32 = iota // enough replicas have it, or none is waited for: its end is told
	unproven                 // nobody knows of it yet
	overBefore               // it was over before it was proven
)

// replicated waits until enough replicas have the lock, and gives it back when they do
// not have it in time. Until then nobody knows of the hold, which is renewed if that
// takes long.
func (a *acquisition) replicated(ctx context.Context, h *Hold) (*Hold, error) {
	e := a.lock.engine
	err := e.AwaitReplicas(ctx, h.tenure.lock.key, h.tenure.acq.Owner)
	if err == nil {
		if h.Err() == nil && h.proof.CompareAndSwap(unproven, proven) {
			return h, nil
		}
		err = fmt.Errorf("%w: its lease was over, or it was taken away, by then", redlatch.ErrNotReplicated)
	}
	h.revoke(ctx.Err() == nil && !e.IsClosing())
	return nil, err
}

// revoke gives a hold back that nobody was given. It waits for that if that is asked
// for; else, and when it takes too long, it goes on in the background.
func (h *Hold) revoke(wait bool) {
	t := h.tenure
	e := t.lock.engine
	e.Watchdog.Remove(&h.lease)
	h.end(endGiven) // unless something else has ended it
	left := t.leave(h)
	t.endSpare()
	if left < 0 {
		return // it was lost, and whatever there is to free is being freed
	}
	if wait {
		h.giveBack(left)
		return
	}
	e.Join()
	if !e.Go(func() { defer e.Leave(); h.giveBack(left) }) {
		e.Leave()
		h.notGivenBack(redlatch.ErrClosed)
		t.passOn(false)
	}
}

// giveBack brings the count on the server to what is left, and passes the turn on.
func (h *Hold) giveBack(left int) {
	t := h.tenure
	err := t.lower(left, t.lock.engine.Command)
	if err != nil && !errors.Is(err, redlatch.ErrLost) {
		h.notGivenBack(err)
	}
}

func (h *Hold) notGivenBack(err error) {
	t := h.tenure
	t.lock.engine.Logger.Warn("redlatch: a lock that too few replicas have was not given back at once: its lease ends it at the latest",
		"lock", t.lock.name, "owner", t.acq.Owner, "error", err)
}
