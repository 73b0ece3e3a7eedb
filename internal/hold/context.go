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

// LockOf names the lock and its kind.
func (w *watched) LockOf() (name, kind string) {
	l := w.ownership.lock
	return l.Name, l.Kind.Name()
}

// whenKnown is what a hold is when its caller knows of it: the observer is next, if there is one.
func (h *Hold) whenKnown() uint32 {
	if h.ownership.lock.Engine.Hooks.Ended == nil {
		return reported
	}
	return known
}

// awaitReport says that the observer has to hear of the grant before the end, unless replicas
// come first.
func (h *Hold) awaitReport() {
	if h.known.Load() == reported {
		h.known.Store(h.whenKnown())
	}
}

// Reported says that the observer was told that the hold was acquired, and with which context,
// of which the values count, it hears of the rest. The hold may be over by now, and then that is reported.
func (h *Hold) Reported(ctx context.Context) {
	if u, is := ctx.(*unending); is { // of an earlier hold, which must not be kept
		ctx = u.of
	}
	h.observed.of = ctx
	if h.known.CompareAndSwap(known, reported) {
		return
	}
	if h.known.CompareAndSwap(overKnown, reported) {
		h.reportEnd(h.ended.Load())
	}
}

// unending has the values of a context, and never ends. That of context.WithoutCancel allocates when
// it is made, and each time that it is asked for a value.
type unending struct{ of context.Context } //nolint:containedctx // that is what it is

func (*unending) Deadline() (at time.Time, has bool) { return at, false }
func (*unending) Done() <-chan struct{}              { return nil }
func (*unending) Err() error                         { return nil }
func (u *unending) Value(key any) any                { return u.of.Value(key) }

// context returns the context of Ended and Released, nil if the observer has none.
func (u *unending) context() context.Context {
	if u.of == nil {
		return nil
	}
	return u
}

// observeEnd tells the observer that the hold is over, or leaves that to Reported.
func (h *Hold) observeEnd(why *ending) {
	switch {
	case h.ownership.lock.Engine.Hooks.Ended == nil, h.since.IsZero():
	case h.known.CompareAndSwap(unknown, overBefore): // no caller ever had it
	case h.known.CompareAndSwap(known, overKnown): // the observer has not heard of it
	default:
		h.reportEnd(why)
	}
}

func (h *Hold) reportEnd(why *ending) {
	l := h.ownership.lock
	var err error
	if why != endGiven {
		err = why.cause
	}
	l.Engine.Hooks.Ended(h.observed.context(), engine.Ended{
		Name: l.Name, Kind: l.Kind.Name(), Owner: h.ownership.owner, Held: time.Since(h.since), Err: err,
	})
	if !h.known.CompareAndSwap(reported, endTold) { // Unlock has returned meanwhile
		h.reportRelease()
	}
}

// observeRelease tells the observer how an Unlock went, of a hold that its caller knew of.
func (h *Hold) observeRelease(began time.Time) {
	hooks := &h.ownership.lock.Engine.Hooks
	if hooks.Released == nil || !h.wasReported() {
		return
	}
	h.took = time.Since(began)
	if hooks.Ended == nil || !h.known.CompareAndSwap(reported, releaseWaits) {
		h.reportRelease()
	} // else after the end, of which another goroutine still tells
}

func (h *Hold) reportRelease() {
	l := h.ownership.lock
	l.Engine.Hooks.Released(h.observed.context(), engine.Released{
		Name: l.Name, Kind: l.Kind.Name(), Owner: h.ownership.owner, Took: h.took, Err: h.result,
	})
}

// wasReported reports whether the observer has heard of the grant.
func (h *Hold) wasReported() bool {
	state := h.known.Load()
	return state == reported || state == endTold || state == releaseWaits
}

// Observe gives a re-entry the context for the observer while it waits for its turn.
func (h *Hold) Observe(ctx context.Context) { h.observed.of = ctx }

// observeQueued tells the observer that a re-entry waits for an inner hold.
func (h *Hold) observeQueued() {
	l := h.ownership.lock
	if tell := l.Engine.Hooks.Queued; tell != nil {
		tell(h.observed.of, engine.Queued{Name: l.Name, Kind: l.Kind.Name()})
	}
}

// Subject is what Do runs a function under, for the observer.
type Subject struct {
	// Engine is the client's.
	Engine *engine.Engine
	// About is the lock, its kind and the owner.
	About engine.DoStarted
}

// Subject returns the hold as what Do runs a function under.
func (h *Hold) Subject() Subject {
	l := h.ownership.lock
	return Subject{l.Engine, engine.DoStarted{Name: l.Name, Kind: l.Kind.Name(), Owner: h.ownership.owner}}
}

// run runs fn, and tells the observer of its begin and end.
func (s Subject) run(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	hooks := &s.Engine.Hooks
	if hooks.DoStarted == nil {
		return fn(ctx)
	}
	ctx = hooks.DoStarted(ctx, s.About)
	if hooks.DoEnded == nil {
		return fn(ctx)
	}
	e := engine.DoEnded{Name: s.About.Name, Kind: s.About.Kind, Owner: s.About.Owner, Panicked: true}
	began := time.Now()
	defer func() {
		e.Took, e.Err = time.Since(began), err
		hooks.DoEnded(ctx, e)
	}()
	err = fn(ctx)
	e.Panicked = false
	return err
}
