package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
)

// innerCaller is a caller that is waiting for a slot. ready is closed when it gets the slot or the outer hold ends.
type innerCaller struct {
	hold  *Hold
	ready chan struct{}
}

var errInner = fmt.Errorf("%w: held by an inner hold of this context", engine.ErrNotAcquired)

// takeSlot takes the slot of outer for h, and waits for it unless try is set. The caller must call leaveSlot, even
// after an error.
func (h *Hold) takeSlot(ctx context.Context, outer *Hold, try bool) error {
	taken, ready := h.requestSlot(outer, !try)
	switch {
	case taken:
		return nil
	case ready != nil:
		return h.awaitSlot(ctx, outer, ready)
	}
	if err := refuse(ctx, outer, errInner); err != nil {
		return err
	}
	return errInner
}

func (h *Hold) requestSlot(outer *Hold, wait bool) (taken bool, ready <-chan struct{}) {
	o := outer.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case outer.ended.Load() != nil:
		return false, nil
	case outer.inner == nil:
		outer.inner, h.outer = h, outer
		return true, nil
	case !wait:
		return false, nil
	}
	c := innerCaller{h, make(chan struct{})}
	outer.waiters = append(outer.waiters, c)
	h.outer = outer
	return false, c.ready
}

func (h *Hold) awaitSlot(ctx context.Context, outer *Hold, ready <-chan struct{}) error {
	e := outer.ownership.lock.Engine
	l := outer.ownership.lock
	waiting := engine.Waiting{Name: l.Name, Kind: l.Kind.Name()}
	if err := e.BeginWait(&waiting); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrNotAcquired, err)
	}
	defer e.EndWait(&waiting)
	engine.OrElse(h.observeQueued, h.leaveSlot)
	long := time.NewTimer(e.Command)
	defer long.Stop()
	for {
		select {
		case <-ready:
			return refuse(ctx, outer, errInner)
		case <-long.C:
			outer.warnOfLongWait()
		case <-ctx.Done():
			return refuse(ctx, outer, errInner)
		case <-e.Closing():
			return engine.ErrClosed
		}
	}
}

// refuse returns why ctx cannot enter outer, or nil if it can. After ErrNotReentered, the caller tries the next outer
// hold that ctx proves.
func refuse(ctx context.Context, outer *Hold, held error) error {
	end := outer.Err()
	given := errors.Is(end, engine.ErrNotHeld) || errors.Is(end, engine.ErrHandedOver)
	switch {
	case end != nil && !given:
		return end
	case errors.Is(context.Cause(ctx), engine.ErrWaitOver):
		return held
	case ctx.Err() != nil && given: // the end of the hold may have canceled it
		return fmt.Errorf("%w: %w", engine.ErrNotAcquired, engine.EndOf(ctx))
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", held, engine.EndOf(ctx))
	case given:
		return ErrNotReentered
	}
	return nil
}

func (h *Hold) warnOfLongWait() {
	o := h.ownership
	o.mu.Lock()
	again := h.warned || h.ended.Load() != nil
	h.warned = true
	o.mu.Unlock()
	if again {
		return
	}
	o.lock.Engine.Logger.Warn("redlatch: Lock waits for an inner hold of the same context; "+
		"in the goroutine with the inner hold, use that hold's context, or unlock it first",
		"lock", o.lock.Name, "owner", o.final.Owner, "after", o.lock.Engine.Command)
}

func (h *Hold) leaveSlot() {
	o := h.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	h.unlink()
}

// unlink is leaveSlot with ownership.mu held. An inner hold takes the place of h; otherwise the first waiter gets the
// slot.
func (h *Hold) unlink() {
	outer, inner := h.outer, h.inner
	h.outer, h.inner = nil, nil
	if inner != nil {
		inner.outer = outer
	}
	switch {
	case outer == nil:
	case outer.inner == h:
		outer.inner = inner
		if inner == nil {
			outer.passSlot()
		}
	default:
		outer.waiters = slices.DeleteFunc(outer.waiters, func(c innerCaller) bool { return c.hold == h })
	}
}

// passSlot gives the hold's slot to the first waiter, if any. ownership.mu must be held.
func (h *Hold) passSlot() {
	if len(h.waiters) == 0 {
		return
	}
	first := h.waiters[0]
	h.waiters = slices.Delete(h.waiters, 0, 1)
	h.inner = first.hold
	close(first.ready)
}

func (h *Hold) dismiss() {
	o := h.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range h.waiters {
		c.hold.outer = nil
		close(c.ready)
	}
	h.waiters = nil
}
