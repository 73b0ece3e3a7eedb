//go:build unix

package hold

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
