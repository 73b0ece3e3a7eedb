package hold

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

// proofKey is the key under which a hold's context carries the hold: a proof for the kinds of
// one family, of this name and client, and for no other lock.
type proofKey struct {
	engine      *engine.Engine
	family, key string
}

// Proof returns the hold of this lock that ctx proves. None, without an error, when there is
// no proof or it counts for nothing; an error when the hold was lost.
func (l *Lock) Proof(ctx context.Context) (*Hold, error) {
	h, ok := ctx.Value(l.proof).(*Hold)
	if !ok {
		return nil, nil
	}
	err := h.Err()
	if errors.Is(err, engine.ErrNotHeld) || errors.Is(err, engine.ErrHandedOver) {
		return nil, nil
	}
	return h, err
}

// Context returns a context that ends when parent does and when the hold does, and that
// proves the hold.
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
		c.cancel(cause) // the caller that ended the hold may not have come to this context yet
	}
	return c.Context.Err()
}

// Value is part of context.Context. It hands out the proof of holding; the proof
// of a hold that was given up counts for nothing, so that one further out shows.
func (c *holdContext) Value(key any) any {
	if k, ok := key.(proofKey); ok && k == c.hold.ownership.lock.proof {
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
	if len(h.contexts) >= 2*int(h.pruned)+8 {
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
	h.contexts, h.pruned = kept, int32(len(kept))
}

// end ends the hold, once, its contexts, and the wait for its slot. It returns false when it had ended.
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
	h.dismiss()
	h.observeEnd(why)
	if g := h.group.Load(); g != nil {
		g.memberEnded(h, why)
	}
	return true
}
