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
// no proof or it counts for nothing, as for a kind without re-entry; an error when the hold was lost.
func (l *Lock) Proof(ctx context.Context) (*Hold, error) {
	h, ok := ctx.Value(l.proof).(*Hold)
	if _, can := l.Kind.(Reentrant); !ok || !can {
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
	c := newContext(parent, h)
	h.mu.Lock()
	end := h.ended.Load()
	if end == nil {
		h.contexts.add(c)
	}
	h.mu.Unlock()
	if end != nil {
		c.cancel(end.cause)
	}
	return c
}

// prove is part of holder. The proof of a hold that was given up counts for nothing, so that one
// further out shows.
func (h *Hold) prove(key proofKey) *Hold {
	if key == h.ownership.lock.proof {
		if end := h.ended.Load(); end != endGiven && end != endHandedOver {
			return h
		}
	}
	return nil
}

// final is part of holder.
func (h *Hold) final() (end time.Time, ends bool) {
	if !h.lease.Fixed && h.lease.Max == 0 {
		return time.Time{}, false
	}
	return h.lease.Final(), true
}

// holder is what a context is tied to: a hold, or a group of them.
type holder interface {
	// Err returns why it is over, nil while it is not.
	Err() error
	// prove returns the hold that a proof is of, nil for none.
	prove(key proofKey) *Hold
	// final returns when it ends however well it is renewed, if it does.
	final() (end time.Time, ends bool)
}

// holdContext is a context tied to a holder. The standard context inside carries
// the cause, and its children hang on to it directly.
type holdContext struct {
	context.Context //nolint:containedctx // it is a context
	of              holder
	cancel          context.CancelCauseFunc
}

func newContext(parent context.Context, of holder) *holdContext {
	inner, cancel := context.WithCancelCause(parent)
	return &holdContext{Context: inner, of: of, cancel: cancel}
}

func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.of.Err(); cause != nil {
		c.cancel(cause) // the caller that ended the hold may not have come to this context yet
	}
	return c.Context.Err()
}

// Value is part of context.Context. It hands out the proof of holding.
func (c *holdContext) Value(key any) any {
	if k, ok := key.(proofKey); ok {
		if h := c.of.prove(k); h != nil {
			return h
		}
	}
	return c.Context.Value(key)
}

func (c *holdContext) Deadline() (time.Time, bool) {
	deadline, ok := c.Context.Deadline()
	if end, ends := c.of.final(); ends && (!ok || end.Before(deadline)) {
		return end, true
	}
	return deadline, ok
}

// contexts are those of a holder, whose mutex guards them.
type contexts struct {
	all    []*holdContext
	pruned int32
}

// add adds one. Those that have ended by themselves are forgotten, so that a long hold does not
// collect them.
func (cs *contexts) add(c *holdContext) {
	if len(cs.all) >= 2*int(cs.pruned)+8 {
		kept := cs.all[:0]
		for _, c := range cs.all {
			if c.Context.Err() == nil {
				kept = append(kept, c)
			}
		}
		clear(cs.all[len(kept):])
		cs.all, cs.pruned = kept, int32(len(kept))
	}
	cs.all = append(cs.all, c)
}

// take returns all, and forgets them.
func (cs *contexts) take() []*holdContext {
	all := cs.all
	cs.all = nil
	return all
}

// end ends the hold, once, its contexts, and the wait for its slot. It returns false when it had ended.
func (h *Hold) end(why *ending) bool {
	if !h.ended.CompareAndSwap(nil, why) {
		return false
	}
	h.mu.Lock()
	contexts := h.contexts.take()
	h.mu.Unlock()
	for _, c := range contexts {
		c.cancel(why.cause)
	}
	h.dismiss()
	if g := h.group.Load(); g != nil {
		g.memberEnded(h, why) // before the observer, which may be slow
	}
	h.observeEnd(why)
	return true
}
