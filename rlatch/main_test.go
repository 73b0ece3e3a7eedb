package rlatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = callers.Soon

var (
	connect = callers.Connect
	within  = callers.Within
)

// newLatch returns a new latch on a new client without polls.
func newLatch(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *rlatch.Latch {
	t.Helper()
	opts = append([]redlatch.Option{redlatch.WithPollCap(time.Hour)}, opts...)
	return rlatch.New(connect(t, s.URL(), opts...), redistest.Key(t))
}

func same(t *testing.T, s *redistest.Server, l *rlatch.Latch) *rlatch.Latch {
	t.Helper()
	return rlatch.New(connect(t, s.URL()), l.Name())
}

func set(t *testing.T, l *rlatch.Latch, n int64) {
	t.Helper()
	was, err := l.TrySet(within(t), n)
	require.NoError(t, err)
	require.True(t, was)
}

func countDown(t *testing.T, l *rlatch.Latch) {
	t.Helper()
	require.NoError(t, l.CountDown(within(t)))
}

func count(t *testing.T, l *rlatch.Latch) int64 {
	t.Helper()
	n, err := l.Count(within(t))
	require.NoError(t, err)
	return n
}

func await(ctx context.Context, l *rlatch.Latch) <-chan error {
	came := make(chan error, 1)
	go func() { came <- l.Wait(ctx) }()
	return came
}

func opens(t *testing.T, came <-chan error) {
	t.Helper()
	select {
	case err := <-came:
		require.NoError(t, err)
	case <-time.After(soon):
		require.FailNow(t, "it does not open")
	}
}

func listening(t *testing.T, s *redistest.Server, l *rlatch.Latch, n int64) {
	t.Helper()
	callers.Listening(t, s, codec.CountDownChannel(l.Name()), n)
}
