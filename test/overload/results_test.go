package overload_test

import (
	"errors"
	"fmt"
	"strings"
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

// counts returns how many calls ended in each way that occurred.
func (y *results) counts() string {
	var all []string
	for _, c := range []struct {
		n    *atomic.Int64
		what string
	}{
		{&y.acquired, "acquired"}, {&y.held, "held by others"}, {&y.notSent, "not sent"},
		{&y.uncertain, "uncertain"}, {&y.other, "otherwise"}, {&y.unlocks, "unlocks failed"},
	} {
		if n := c.n.Load(); n > 0 {
			all = append(all, fmt.Sprint(n, " ", c.what))
		}
	}
	return strings.Join(all, ", ")
}

// String returns the counts, and the first error that is not contention.
func (y *results) String() string {
	text := fmt.Sprintf("%s; the slowest took %v", y.counts(), time.Duration(y.slowest.Load()).Round(time.Millisecond))
	if err := y.first.Load(); err != nil {
		text += fmt.Sprintf("; the first error: %v", *err)
	}
	return text
}

// runConcurrently runs call on n goroutines at once, and returns what waits for them.
func runConcurrently(n int, call func(i int)) (wait func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	return all.Wait
}
