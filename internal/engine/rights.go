package engine

import (
	"sync"

	"github.com/redlatch/redlatch/transport"
)

// rights are those that the server was found to refuse. Each is logged once.
type rights struct {
	mu    sync.Mutex // guards noted
	noted map[string]bool
}

// news reports whether the right was not noted before.
func (r *rights) news(right string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted[right] {
		return false
	}
	if r.noted == nil {
		r.noted = map[string]bool{}
	}
	r.noted[right] = true
	return true
}

// Lacks logs what is worse because the user lacks a right, when err says that it
// does: once for each right. It reports whether err says that.
func (e *Engine) Lacks(right, worse string, err error) bool {
	if !transport.IsCode(err, "NOPERM") {
		return false
	}
	if e.rights.news(right) {
		e.Logger.Warn("redlatch: "+worse, "right", right, "error", err)
	}
	return true
}
