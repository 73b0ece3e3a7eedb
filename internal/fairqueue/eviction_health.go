package fairqueue

import (
	"errors"
	"sync"

	"github.com/redlatch/redlatch/internal/engine"
)

// missedCounts is how many counts in a row may miss this client's own listeners
// before that is no matter of a connection that is being made anew.
const missedCounts = 3

// evictionHealth is whether dead waiters can be distinguished from live ones.
type evictionHealth struct {
	mu       sync.Mutex // guards what follows
	missed   int        // counts in a row that prove nothing
	reported bool       // that it does not work
}

// report takes the outcome of a count in, and logs when counting ceases to work,
// or works again.
func (h *evictionHealth) report(e *engine.Engine, err error, proves bool) {
	switch {
	case errors.Is(err, engine.ErrClosed), e.IsClosing():
		return
	case proves:
		if h.works() {
			e.Logger.Info("redlatch: dead waiters of fair locks can be distinguished from live ones again")
		}
		return
	case err == nil:
		err = engine.ErrOwnNotCounted
	}
	if h.fails(!engine.Retryable(err) && !errors.Is(err, engine.ErrOwnNotCounted)) {
		e.Logger.Warn("redlatch: dead waiters of fair locks cannot be distinguished from live ones, and are not evicted", "error", err)
	}
}

// works reports whether that is news.
func (h *evictionHealth) works() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.reported
	h.missed, h.reported = 0, false
	return news
}

// fails reports whether that is news.
func (h *evictionHealth) fails(forGood bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missed++
	news := !h.reported && (forGood || h.missed >= missedCounts)
	h.reported = h.reported || news
	return news
}
