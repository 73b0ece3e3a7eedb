package watch_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

func open(t *testing.T, url string) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestWatchFollowsASemaphore(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	pool := rsemaphore.NewExpirable(open(t, s.URL()), "pool")
	_, err := pool.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	p := program.Start(t, s.URL(), "watch", "--json", "pool")
	e := program.Events(p, "number")[0]
	require.Equal(t, "pool", e["name"])
	require.InDelta(t, 3, e["available"], 0)

	hold, err := pool.Acquire(t.Context(), 1)
	require.NoError(t, err)
	e = program.Events(p, "taken")[0]
	require.Equal(t, hold.ID(), e["permit"])
	require.InDelta(t, 2, e["available"], 0)
	require.InDelta(t, 1, e["taken"], 0)
	require.NoError(t, hold.Release())
	began := time.Now()
	e = program.Events(p, "released")[0]
	require.Equal(t, hold.ID(), e["permit"])
	require.InDelta(t, 3, e["available"], 0)
	require.InDelta(t, 1, e["messages"], 0, "a message tells of it, after %v", time.Since(began))

	// One of another client, which dies.
	s.Do(t, "EVAL", "redis.call('DECR', KEYS[1]) return redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])", 2,
		"pool", codec.PermitsKey("pool"), time.Now().Add(2*time.Second).UnixMilli(), "0123456789abcdef")
	program.Events(p, "taken")
	ctx, cancel := context.WithTimeout(t.Context(), program.Soon)
	defer cancel()
	other, err := pool.Acquire(ctx, 3)
	require.NoError(t, err)
	e = program.Events(p, "expired")[0]
	require.Equal(t, hex.EncodeToString([]byte("0123456789abcdef")), e["permit"])
	require.NoError(t, other.Release())
	require.NoError(t, pool.SetPermits(t.Context(), 7))
	events := program.Events(p, "changed")
	e = events[len(events)-1]
	require.InDelta(t, 7, e["available"], 0)
	s.Do(t, "DEL", "pool")
	require.Nil(t, program.Events(p, "gone")[0]["available"])
	require.NoError(t, p.Cmd.Process.Signal(program.Interrupt))
	got := p.Outcome(program.Soon)
	require.Equal(t, program.CodeInterrupted, got.Code)
	require.Empty(t, got.Stderr)
}

func TestWatchFollowsALatchAndAPlainSemaphore(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	latch := rlatch.New(open(t, s.URL()), "imports")
	_, err := latch.TrySet(t.Context(), 2)
	require.NoError(t, err)
	p := program.Start(t, s.URL(), "watch", "imports")
	require.Contains(t, program.ToEvent(p, "number")[0], "2 available, 0 taken")
	require.NoError(t, latch.CountDown(t.Context()))
	lines := program.ToEvent(p, "changed")
	require.Contains(t, lines[len(lines)-1], "1 available, 0 taken, it was 2")
	require.NoError(t, latch.CountDown(t.Context()))
	lines = program.ToEvent(p, "gone")
	require.Contains(t, lines[len(lines)-1], "a latch is open")
	_, err = latch.TrySet(t.Context(), 5)
	require.NoError(t, err)
	program.ToEvent(p, "5 available")
	s.Do(t, "SET", "imports", "text")
	got := p.Outcome(program.Soon)
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stderr, "holds a string")
}
