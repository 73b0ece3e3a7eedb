package redistest

import (
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
	for range 5 {
		longest := watchStalls()
		err := try()
		still := longest()
		if err == nil {
			return
		}
		require.Greater(t, still, stall, "%v", err)
		t.Logf("tried again, for the machine stood still for %v: %v", still, err)
	}
	require.Fail(t, "the machine stood still each time")
}

// watchStalls begins to look how much too late this process wakes up, and returns a function
// that ends this and tells the longest.
func watchStalls() func() time.Duration {
	const nap = 10 * time.Millisecond
	end, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		tick := time.NewTicker(nap)
		defer tick.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				longest <- most
				return
			case <-tick.C:
				most = max(most, time.Since(last)-nap)
			}
		}
	}()
	return func() time.Duration { close(end); return <-longest }
}
