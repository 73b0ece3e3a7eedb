package overload_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// results counts the results of callers.
type results struct {
	acquired, held, notSent, uncertain, other atomic.Int64
	unlocks                                   atomic.Int64 // that failed
	first                                     atomic.Pointer[error]
	slowest                                   atomic.Int64
}

// count takes in the outcome of a Lock or TryLock that began at a moment, and
// unlocks.
func (y *results) count(hold *rlock.Hold, err error, began time.Time) {
	took := int64(time.Since(began))
	for old := y.slowest.Load(); took > old; old = y.slowest.Load() {
		y.slowest.CompareAndSwap(old, took)
	}
	switch {
	case err == nil:
		y.acquired.Add(1)
		if err := hold.Unlock(); err != nil {
			y.unlocks.Add(1)
			y.first.CompareAndSwap(nil, &err)
		}
		return
	case errors.Is(err, redlatch.ErrUncertain):
		y.uncertain.Add(1)
	case errors.Is(err, redlatch.ErrNotSent):
		y.notSent.Add(1)
	case errors.Is(err, redlatch.ErrNotAcquired):
		y.held.Add(1)
		return
	default:
		y.other.Add(1)
	}
	y.first.CompareAndSwap(nil, &err)
}

// String returns the counts, and the first error that is not contention.
func (y *results) String() string {
	text := fmt.Sprintf("%d acquired, %d held by others, %d not sent, %d uncertain, %d otherwise, %d unlocks failed; the slowest took %v",
		y.acquired.Load(), y.held.Load(), y.notSent.Load(), y.uncertain.Load(), y.other.Load(), y.unlocks.Load(),
		time.Duration(y.slowest.Load()).Round(time.Millisecond))
	if err := y.first.Load(); err != nil {
		text += fmt.Sprintf("; the first error: %v", *err)
	}
	return text
}

// outcome returns how long the load took, and how many calls ended in each way, for the table.
func (y *results) outcome(took time.Duration) string {
	text := fmt.Sprintf("%.1f s:", took.Seconds())
	for _, c := range []struct {
		n    *atomic.Int64
		what string
	}{
		{&y.acquired, "acquired"}, {&y.held, "held by others"}, {&y.notSent, "not sent"},
		{&y.uncertain, "uncertain"}, {&y.other, "otherwise"},
	} {
		if n := c.n.Load(); n > 0 {
			text += fmt.Sprintf(" %d %s,", n, c.what)
		}
	}
	return text[:len(text)-1]
}

// runConcurrently runs call on n goroutines at once, and returns what waits for them.
func runConcurrently(n int, call func(i int)) (wait func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	return all.Wait
}
