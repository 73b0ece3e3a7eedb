package hold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

type proofKey struct {
	engine      *engine.Engine
	family, key string
}

// Proof returns the hold of l that ctx proves. It returns nil if there is none, if the hold was released or handed
// over, or if the kind is not reentrant. If the hold has ended otherwise, Proof also returns the reason.
func (l *Lock) Proof(ctx context.Context) (*Hold, error) {
	h, ok := ctx.Value(l.proof).(*Hold)
	if !ok || l.Owning == nil {
		return nil, nil
	}
	err := h.Err()
	if errors.Is(err, engine.ErrNotHeld) || errors.Is(err, engine.ErrHandedOver) {
		return nil, nil
	}
	return h, err
}

// Context returns a context that proves h and that is canceled when parent or h ends.
func (h *Hold) Context(parent context.Context) context.Context { return h.derive(parent, h) }

func (h *Hold) prove(key proofKey) *Hold {
	if key == h.ownership.lock.proof {
		if end := h.ended.Load(); end != endGiven && end != endHandedOver {
			return h
		}
	}
	return nil
}

func (h *Hold) owners(all []string) []string {
	if owner := h.ownership.owner; h.ended.Load() == nil && !owner.IsZero() {
		all = append(all, owner.String())
	}
	return all
}

func (h *Hold) final() (end time.Time, ends bool) {
	if !h.lease.Fixed && h.lease.Max == 0 {
		return time.Time{}, false
	}
	return h.lease.Final(), true
}

type holder interface {
	Err() error
	prove(key proofKey) *Hold
	// owners appends its live owners as in Redis.
	owners(all []string) []string
	// final returns when the holder will end even if it is renewed. Without such a limit, ends is false.
	final() (end time.Time, ends bool)
}

type life struct {
	ended atomic.Pointer[ending] // nil while live

	mu       sync.Mutex // guards the fields below; not held while contexts are canceled
	contexts []*holdContext
	pruned   int32 // length at the last pruning
}

func (l *life) derive(parent context.Context, of holder) context.Context {
	inner, cancel := context.WithCancelCause(parent)
	c := &holdContext{Context: inner, of: of, cancel: cancel}
	l.mu.Lock()
	end := l.ended.Load()
	if end == nil {
		if len(l.contexts) >= 2*int(l.pruned)+8 {
			l.contexts = slices.DeleteFunc(l.contexts, func(c *holdContext) bool { return c.Context.Err() != nil })
			l.pruned = int32(len(l.contexts))
		}
		l.contexts = append(l.contexts, c)
	}
	l.mu.Unlock()
	if end != nil {
		c.cancel(end.cause)
	}
	return c
}

// end returns false if the life had already ended.
func (l *life) end(why *ending) bool {
	if !l.ended.CompareAndSwap(nil, why) {
		return false
	}
	l.mu.Lock()
	contexts := l.contexts
	l.contexts = nil
	l.mu.Unlock()
	for _, c := range contexts {
		c.cancel(why.cause)
	}
	return true
}

type holdContext struct {
	context.Context //nolint:containedctx // it is a context
	of              holder
	cancel          context.CancelCauseFunc
}

func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.of.Err(); cause != nil {
		c.cancel(cause) // the goroutine that ended the hold may not have canceled c yet
	}
	return c.Context.Err()
}

func (c *holdContext) Value(key any) any {
	if k, ok := key.(proofKey); ok {
		if h := c.of.prove(k); h != nil {
			return h
		}
	}
	if _, is := key.(engine.OuterKey); is {
		return c.of.owners(engine.OuterOf(c.Context))
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

// end ends the hold, its contexts and the waits for its slot. It returns false if the hold had already ended. Otherwise,
// the caller must call observeEnd, after which nothing may be left to do, because the observer may end the goroutine.
func (h *Hold) end(why *ending) bool {
	if !h.life.end(why) {
		return false
	}
	h.dismiss()
	if g := h.group.Load(); g != nil {
		g.memberEnded(h, why) // before the observer, which may be slow
	}
	return true
}

func (h *Hold) whenKnown() uint32 {
	if h.ownership.lock.Engine.Hooks.Ended == nil {
		return reported
	}
	return known
}

// grantReported records the context that the observer returned for the grant, and reports the end if the hold has
// already ended.
func (h *Hold) grantReported(ctx context.Context) {
	if u, is := ctx.(*unending); is { // the context of an earlier hold, which must not be retained
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

// unending has the values of a context but never ends. Unlike context.WithoutCancel, it does not allocate.
type unending struct{ of context.Context } //nolint:containedctx // it is a context

func (*unending) Deadline() (at time.Time, has bool) { return at, false }
func (*unending) Done() <-chan struct{}              { return nil }
func (*unending) Err() error                         { return nil }
func (u *unending) Value(key any) any                { return u.of.Value(key) }

func (u *unending) context() context.Context {
	if u.of == nil {
		return nil
	}
	return u
}

func (h *Hold) observeEnd(why *ending) {
	switch {
	case h.ownership.lock.Engine.Hooks.Ended == nil, h.since.IsZero():
	case h.known.CompareAndSwap(unknown, overBefore):
	case h.known.CompareAndSwap(known, overKnown): // the grant is not reported yet
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
	e := h.event()
	e.Took, e.Err = time.Since(h.since), err
	l.Engine.Hooks.Ended(h.observed.context(), e)
	if !h.known.CompareAndSwap(reported, endTold) { // Unlock has returned
		h.reportRelease()
	}
}

func (h *Hold) observeRelease(began time.Time) {
	hooks := &h.ownership.lock.Engine.Hooks
	if hooks.Released == nil || !h.wasReported() {
		return
	}
	h.took = time.Since(began)
	if hooks.Ended == nil || !h.known.CompareAndSwap(reported, releaseWaits) {
		h.reportRelease()
	} // otherwise reportEnd does that, on another goroutine
}

func (h *Hold) reportRelease() {
	e := h.event()
	e.Took, e.Err = h.took, h.result
	h.ownership.lock.Engine.Hooks.Released(h.observed.context(), e)
}

func (h *Hold) wasReported() bool {
	state := h.known.Load()
	return state == reported || state == endTold || state == releaseWaits
}

// Observe sets the observer's context for a re-entry.
func (h *Hold) Observe(ctx context.Context) { h.observed.of = ctx }

func (h *Hold) observeQueued() {
	if tell := h.ownership.lock.Engine.Hooks.Queued; tell != nil {
		tell(h.observed.of, h.event())
	}
}

func (h *Hold) event() engine.Event {
	l := h.ownership.lock
	return engine.Event{Name: l.Name, Kind: l.Kind.Name(), Owner: h.ownership.owner}
}

// Public is a public hold.
type Public interface {
	Context(parent context.Context) context.Context
	Unlock() error
}

// Do calls fn with the context of public, the public form of h, and then releases the hold, even if fn panics. It joins
// the errors of both.
func (h *Hold) Do(ctx context.Context, public Public, fn func(ctx context.Context) error) error {
	return Do(ctx, &h.ownership.lock.Engine.Hooks, h.event(), public, fn)
}

// Do is [Hold.Do] for any kind of hold. The observer receives the event e.
func Do(ctx context.Context, hooks *engine.Hooks, e engine.Event, h Public, fn func(ctx context.Context) error) (err error) {
	defer func() {
		if unlockErr := h.Unlock(); unlockErr != nil {
			if errors.Is(unlockErr, err) { // as when fn returns the cause of its context
				err = nil
			}
			err = errors.Join(err, unlockErr)
		}
	}()
	return run(h.Context(ctx), hooks, e, fn)
}

func run(ctx context.Context, hooks *engine.Hooks, e engine.Event, fn func(ctx context.Context) error) (err error) {
	if hooks.DoStarted == nil {
		return fn(ctx)
	}
	ctx = hooks.DoStarted(ctx, e)
	if hooks.DoEnded == nil {
		return fn(ctx)
	}
	e.Panicked = true
	began := time.Now()
	defer func() {
		e.Took, e.Err = time.Since(began), err
		hooks.DoEnded(ctx, e)
	}()
	err = fn(ctx)
	e.Panicked = false
	return err
}
