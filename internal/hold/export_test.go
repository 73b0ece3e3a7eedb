package hold

import (
	"context"
	"time"
)

// SetLease starts the lease of an attempt that was sent at the time sent.
func SetLease(h *Hold, sent time.Time, margin time.Duration) {
	h.lease.Hold(sent, func(time.Duration) time.Duration { return margin })
}

// Contexts returns the number of a hold's contexts.
func Contexts(h *Hold) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.contexts)
}

// HoldContext is the type of a hold's contexts.
type HoldContext = holdContext

// LeaveAndCorrect runs Unlock up to its release while a re-entry in doubt corrects the count. The returned function
// sends the release.
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

// EndAlone ends a hold without ending its group.
func EndAlone(h *Hold) bool { return h.ended.CompareAndSwap(nil, endMaxHold) }
