package hold

import (
	"context"
	"time"
)

// SetLease sets a hold's lease as an attempt that was sent at sent does.
func SetLease(h *Hold, sent time.Time, margin time.Duration) {
	h.lease.Hold(sent, func(time.Duration) time.Duration { return margin })
}

// Contexts returns how many contexts a hold knows.
func Contexts(h *Hold) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.contexts)
}

// HoldContext is the type of a hold's contexts.
type HoldContext = holdContext

// LeaveAndCorrect does what an Unlock does until it sends the release, while what resolves an
// earlier re-entry corrects the count. It returns what frees the lock then.
func LeaveAndCorrect(h *Hold) (free func(bound time.Duration) error, corrected bool) {
	o := h.ownership
	if !o.beginChangeFor(time.Second) || o.remove(h) != 0 {
		return nil, false
	}
	o.correct(nil)
	if o.beginChange(context.Background()) != nil {
		return nil, false
	}
	o.endChange()
	return h.free, true
}

// EndAlone does what the end of a hold begins with.
func EndAlone(h *Hold) bool { return h.ended.CompareAndSwap(nil, endMaxHold) }
