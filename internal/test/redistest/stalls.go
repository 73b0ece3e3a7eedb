package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stall is how long the machine may stand still without an effect on what is to be done 0.2 s,
// or more, before a key expires.
const stall = 100 * time.Millisecond

// UnlessTheMachineStalls requires that try has no error. Where it has one, and this process did
// not run for longer than stall, try is called again, five times at most: on a machine that
// stands still, what is to be done before a key expires is done when that goes on.
func UnlessTheMachineStalls(t *testing.T, try func() error) {
	t.Helper()
	stalls, stop := watchStalls()
	defer stop()
	for range 5 {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		still := stalls.Longest(began, time.Now())
		require.Greater(t, still, stall, "%v", err)
		t.Logf("tried again, for the machine stood still for %v: %v", still, err)
	}
	require.Fail(t, "the machine stood still each time")
}

// Stalls tells when this process woke up too late.
type Stalls struct {
	mu   sync.Mutex // guards seen
	seen []stood
}

// stood is a stall, and when it ended.
type stood struct {
	end  time.Time
	took time.Duration
}

// WatchStalls looks until the test ends.
func WatchStalls(tb testing.TB) *Stalls {
	tb.Helper()
	s, stop := watchStalls()
	tb.Cleanup(stop)
	return s
}

// Longest returns how long the longest stall took that ended between two times.
func (s *Stalls) Longest(from, to time.Time) (most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen {
		if !one.end.Before(from) && !one.end.After(to) {
			most = max(most, one.took)
		}
	}
	return most
}

// watchStalls begins to look, and returns a function that ends this.
func watchStalls() (s *Stalls, stop func()) {
	const nap = 10 * time.Millisecond
	s, end := &Stalls{}, make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		tick := time.NewTicker(nap)
		defer tick.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				return
			case <-tick.C:
				if took := time.Since(last) - nap; took > stall {
					s.mu.Lock()
					s.seen = append(s.seen, stood{time.Now(), took})
					s.mu.Unlock()
				}
			}
		}
	})
	return s, func() { close(end); looks.Wait() }
}
