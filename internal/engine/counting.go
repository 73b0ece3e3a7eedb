package engine

import (
	"errors"
	"sync"
)

var errNotCounted = errors.New("the server does not count this client's own listeners")

// missedCounts is how many counts in a row may miss this client's own listeners
// before that is no matter of a connection that is being made anew.
const missedCounts = 3

// counting is whether the dead can be told from the living.
type counting struct {
	mu     sync.Mutex // guards what follows
	missed int        // counts in a row that prove nothing
	told   bool       // that it does not work
}

// report takes the outcome of a count in, and logs when counting ceases to work,
// or works again.
func (c *counting) report(e *Engine, err error, proves bool) {
	switch {
	case errors.Is(err, ErrClosed), e.IsClosing():
		return
	case proves:
		if c.works() {
			e.Logger.Info("redlatch: dead waiters of fair locks can be told from live ones again")
		}
		return
	case err == nil:
		err = errNotCounted
	}
	if c.fails(!retryable(err) && !errors.Is(err, errNotCounted)) {
		e.Logger.Warn("redlatch: dead waiters of fair locks cannot be told from live ones, and are not evicted", "error", err)
	}
}

// works reports whether that is news.
func (c *counting) works() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.told
	c.missed, c.told = 0, false
	return news
}

// fails reports whether that is news.
func (c *counting) fails(forGood bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed++
	news := !c.told && (forGood || c.missed >= missedCounts)
	c.told = c.told || news
	return news
}
