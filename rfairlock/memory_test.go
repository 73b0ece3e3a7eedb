package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
)

// limitMemory makes the server reject commands that may need memory; 0 ends that.
func limitMemory(t *testing.T, s *redistest.Server, bytes int) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "maxmemory", bytes)
}

func TestAPlaceIsGivenUpOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := rfairlock.New(connect(t, s.URL(), noPoll()), "queued")
	hold := take(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	leaves := queueUp(ctx, t, s, l, 1)[0]
	stays := queueUp(t.Context(), t, s, l, 1)[0]
	limitMemory(t, s, 1)
	cancel()
	require.ErrorIs(t, leaves.failed(t, soon), context.Canceled)
	awaitQueue(t, s, l.Name(), 1)
	require.NoError(t, hold.Unlock())
	require.NoError(t, stays.acquired(t, promptly).Unlock())
	limitMemory(t, s, 0)
	requireNoTrace(t, s, l.Name())
}

// A heartbeat comes every five seconds, and puts a deadline off to fifteen from then.
func TestAPlaceIsKeptOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := rfairlock.New(connect(t, s.URL(), noPoll()), "kept")
	hold := take(t, l)
	waits := queueUp(t.Context(), t, s, l, 1)[0]
	owner := queueOf(t, s, l.Name())[0]
	due := time.Now().Add(6 * time.Second)
	s.Do(t, "ZADD", codec.TimeoutKey(l.Name()), due.UnixMilli(), owner)
	limitMemory(t, s, 1)
	until(t, soon, "the heartbeat", func() bool { return deadlinesOf(t, s, l.Name())[owner] > due.Add(3*time.Second).UnixMilli() })
	limitMemory(t, s, 0)
	require.NoError(t, hold.Unlock())
	require.NoError(t, waits.acquired(t, promptly).Unlock())
}
