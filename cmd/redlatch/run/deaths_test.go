//go:build unix

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// awaitDeaths returns the path of a pipe, and a channel that gets the time at which all
// processes that had it open were dead.
func awaitDeaths(t *testing.T) (string, <-chan time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	death := make(chan time.Time, 1)
	go func() {
		_, _ = os.ReadFile(path) // waits for a first process to open it, and for all to close it
		death <- time.Now()
	}()
	return path, death
}

// keysEnd returns when each of the keys expires if it is not renewed, by the clock of the
// server, which is that of this machine. With pause the server does nothing more for its
// clients: no renewal comes between the asking and the pause.
func keysEnd(t *testing.T, s *redistest.Server, pause bool, names ...string) []time.Time {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("MULTI"))
	require.NoError(t, c.Send("TIME"))
	for _, name := range names {
		require.NoError(t, c.Send("PTTL", name))
	}
	if pause {
		require.NoError(t, c.Send("CLIENT", "PAUSE", time.Hour.Milliseconds()))
	}
	replies, err := redis.Values(c.Do("EXEC"))
	require.NoError(t, err)
	now, err := redis.Int64s(replies[0], nil)
	require.NoError(t, err)
	ends := make([]time.Time, len(names))
	for i := range names {
		ms, ok := replies[1+i].(int64)
		require.True(t, ok)
		require.Positive(t, ms)
		ends[i] = time.Unix(now[0], now[1]*1000).Add(time.Duration(ms) * time.Millisecond)
	}
	return ends
}

// diedInTime returns an error for a command that was alive when its key expired. One that was
// killed seconds before that was given up without need, which ends the test.
func diedInTime(t *testing.T, died, over time.Time) error {
	t.Helper()
	require.Greater(t, died, over.Add(-4*time.Second), "given up without need")
	if died.Before(over) {
		return nil
	}
	return fmt.Errorf("the command outlived its lock by %v", died.Sub(over))
}

// stall is how long the machine may stand still without an effect on commands that are killed
// 0.2 s, or more, before their keys expire.
const stall = 100 * time.Millisecond

// unlessTheMachineStalls requires that try has no error. Where it has one, and this process,
// which did nothing but sleep, did not run for longer than stall, it is tried again, five times
// at most: a command on a machine that stands still is killed when that goes on.
func unlessTheMachineStalls(t *testing.T, try func() error) {
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
