package rlatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// bubble runs a test in fake time. Each call to open returns the latch on a new client that does not
// poll.
func bubble(t *testing.T, test func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		test(t, s, func(opts ...redlatch.Option) *rlatch.Latch {
			return rlatch.New(callers.InProcess(t, s, append([]redlatch.Option{redlatch.WithPollCap(24 * time.Hour)}, opts...)...), "job")
		})
	})
}

func set(t *testing.T, l *rlatch.Latch, n int64) {
	t.Helper()
	was, err := l.TrySetCount(t.Context(), n)
	require.NoError(t, err)
	require.True(t, was)
}

func countDown(t *testing.T, l *rlatch.Latch) {
	t.Helper()
	require.NoError(t, l.CountDown(t.Context()))
}

func count(t *testing.T, l *rlatch.Latch) int64 {
	t.Helper()
	n, err := l.Count(t.Context())
	require.NoError(t, err)
	return n
}

// await calls Wait in a goroutine, and returns when it is waiting.
func await(ctx context.Context, l *rlatch.Latch) <-chan error {
	came := make(chan error, 1)
	go func() { came <- l.Wait(ctx) }()
	synctest.Wait()
	return came
}

func opens(t *testing.T, came <-chan error) {
	t.Helper()
	select {
	case err := <-came:
		require.NoError(t, err)
	case <-time.After(3 * time.Second):
		require.FailNow(t, "it does not open")
	}
}

// listening checks the number of connections that have subscribed.
func listening(t *testing.T, s *redistest.MiniServer, n int64) {
	t.Helper()
	time.Sleep(time.Second)
	pair, _ := s.Do(t, "PUBSUB", "NUMSUB", protocol.CountDownChannel("job")).([]any)
	require.Len(t, pair, 2)
	require.Equal(t, n, pair[1])
}
