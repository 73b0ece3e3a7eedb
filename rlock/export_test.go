package rlock

import "slices"

// HasLeft reports whether a hold counts no longer. An Unlock in another goroutine, which
// ends the hold first, has come as far as that then.
func HasLeft(h *Hold) bool {
	t := h.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.Contains(t.holds, h)
}
