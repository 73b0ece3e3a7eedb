package rlock

import (
	"context"
	"time"
)

// Context returns a context that ends when parent does and when the hold does.
// Its cause, see context.Cause, is then what [Hold.Err] returns. Its Err asks the
// clocks, so that it is right even before a timer could fire; contexts made from
// it end when the watchdog sees the end, a moment later. With a fixed lease or a
// maximum it has that deadline.
//
// It proves the hold: Lock and TryLock of the same lock and client with it, or
// with a context made from it, re-enter the lock, and each re-entry needs an
// Unlock of its own. While the hold is live that succeeds; after it was lost it
// gives ErrLost, after it reached its maximum ErrMaxHold, also when it was unlocked
// then; after it was unlocked while it lived the proof counts for nothing.
//
// Use it for the work that needs the lock. It costs no goroutine; the hold knows it
// until parent ends or the hold does, so give a long hold a parent for each job.
func (h *Hold) Context(parent context.Context) context.Context {
	inner, cancel := context.WithCancelCause(parent)
	c := &holdContext{Context: inner, hold: h, cancel: cancel}
	if !h.attach(c) {
		cancel(h.ended.Load().cause)
	}
	return c
}

// holdContext is a context tied to a hold. The standard context inside carries
// the cause, and its children hang on to it directly.
type holdContext struct {
	context.Context //nolint:containedctx // it is a context
	hold            *Hold
	cancel          context.CancelCauseFunc
}

// Err is part of context.Context.
func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.hold.Err(); cause != nil {
		c.cancel(cause) // whoever ended the hold may not have come to us yet
	}
	return c.Context.Err()
}

// Value is part of context.Context. It hands out the proof of holding; the proof
// of a hold that was given up counts for nothing, so that one further out shows.
func (c *holdContext) Value(key any) any {
	if k, ok := key.(proofKey); ok && k == c.hold.tenure.lock.proofKey {
		if end := c.hold.ended.Load(); end != endGiven && end != endHandedOver {
			return c.hold
		}
	}
	return c.Context.Value(key)
}

// Deadline is part of context.Context.
func (c *holdContext) Deadline() (time.Time, bool) {
	deadline, ok := c.Context.Deadline()
	if !c.hold.lease.Fixed && c.hold.lease.Max == 0 {
		return deadline, ok
	}
	if end := c.hold.lease.Final(); !ok || end.Before(deadline) {
		return end, true
	}
	return deadline, ok
}

// attach makes the hold's end end c. It returns false when the hold is over.
func (h *Hold) attach(c *holdContext) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended.Load() != nil {
		return false
	}
	if len(h.contexts) >= 2*h.pruned+8 {
		h.prune()
	}
	h.contexts = append(h.contexts, c)
	return true
}

// prune forgets contexts that have ended by themselves, mu held, so that a long
// hold does not collect them.
func (h *Hold) prune() {
	kept := h.contexts[:0]
	for _, c := range h.contexts {
		if c.Context.Err() == nil {
			kept = append(kept, c)
		}
	}
	clear(h.contexts[len(kept):])
	h.contexts, h.pruned = kept, len(kept)
}

// end ends the hold, once, and its contexts. It returns false when it had ended.
func (h *Hold) end(why *ending) bool {
	if !h.ended.CompareAndSwap(nil, why) {
		return false
	}
	h.mu.Lock()
	contexts := h.contexts
	h.contexts = nil
	h.mu.Unlock()
	for _, c := range contexts {
		c.cancel(why.cause)
	}
	h.observeEnd(why)
	return true
}
