package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// attempt runs the acquire script once. It returns true when a.hold is live,
// and false without an error when somebody else has the lock.
func (a *acquisition) attempt(ctx context.Context) (bool, error) {
	e, h := a.lock.engine, a.hold
	at := e.Attempt()
	a.lock.proto.Acquire(&at.Call, &h.acq)
	sent := time.Now()
	reply, err := at.Run(ctx, (*ghost)(h))
	if err != nil {
		a.unanswered(err)
		return false, err
	}
	acquired, ttl, err := codec.Acquired(reply)
	switch {
	case err != nil:
		h.discard()
		return false, err
	case !acquired:
		a.ttl, a.away = ttl, nil
		return false, nil
	}
	return a.grant(sent)
}

// unanswered deals with an attempt that ended with an error.
func (a *acquisition) unanswered(err error) {
	var refusal *transport.ServerError
	switch {
	case errors.Is(err, redlatch.ErrUncertain):
		// The owner may be about to acquire the lock. It is never used again.
		a.fresh()
	case errors.As(err, &refusal) && !core.Passing(err) && !refusal.HasCode("WRONGTYPE"):
		// A script that failed half-way may have left the lock held.
		a.hold.discard()
		a.fresh()
	}
}

// fresh gives the acquisition a hold with an owner that nobody has had.
func (a *acquisition) fresh() { a.hold = newHold(a.lock, &a.set) }

// grant turns a lock that was acquired into a live hold.
func (a *acquisition) grant(sent time.Time) (bool, error) {
	e, h := a.lock.engine, a.hold
	if !h.lease.Hold(sent, e.LossMargin(h.lease.TTL)) {
		h.discard()
		return false, fmt.Errorf("%w: nothing was left of the lease of %v when the reply came",
			redlatch.ErrNotAcquired, h.lease.TTL)
	}
	if !e.Watchdog.Add(&h.lease) {
		h.discard()
		return false, redlatch.ErrClosed
	}
	return true, nil
}

// ghost is a hold whose acquire has no known outcome.
type ghost Hold

// Haunt is part of core.Ghost: it sees to it that a lock acquired for a caller
// who has left is given back.
func (g *ghost) Haunt(at *core.Attempt, reply any, err error) {
	h := (*Hold)(g)
	if errors.Is(err, redlatch.ErrUncertain) {
		h.settle(at)
		return
	}
	at.Free()
	if err == nil {
		if acquired, _, decodeErr := codec.Acquired(reply); decodeErr == nil && !acquired {
			return
		}
	}
	h.discard()
}

// discard frees the lock in the background if this hold's owner has it.
func (h *Hold) discard() { h.settle(nil) }

func (h *Hold) settle(at *core.Attempt) {
	h.lock.engine.Settle(&core.Doubt{
		Name:    h.lock.name,
		Owner:   h.owner.String(),
		Attempt: at,
		Release: func(c *transport.Call) { h.lock.proto.Release(c, &h.acq, 0) },
		Lease:   h.lease.TTL,
	})
}
