package observer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestStatsCountWhatThereIs(t *testing.T) {
	t.Parallel()
	client := open(t, redistest.Shared(t).URL())
	require.Zero(t, client.Stats())
	l, fair := rlock.New(client, redistest.Key(t)), rfairlock.New(client, redistest.Key(t))
	first, err := l.Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	beforeSecond := time.Now()
	second, err := fair.Lock(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, client.Stats().Held)
	require.GreaterOrEqual(t, client.Stats().OldestHold, 200*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { _, err := l.Lock(ctx); done <- err }()
	go func() { _, err := fair.Lock(ctx); done <- err }()
	require.Eventually(t, func() bool { // the caller of the plain lock waits for the other one of its process
		s := client.Stats()
		return s.Waiting == 2 && s.Subscriptions == 1
	}, soon, time.Millisecond)

	plain, others := 0, 0
	for _, s := range client.StatsBy(strings.ToUpper) {
		require.Equal(t, 1, s.Held)
		require.Equal(t, 1, s.Waiting)
		switch s.Group {
		case strings.ToUpper(l.Name()):
			require.Equal(t, "plain", s.Kind)
			require.GreaterOrEqual(t, s.OldestHold, 200*time.Millisecond)
			plain++
		case strings.ToUpper(fair.Name()):
			require.Equal(t, "fair", s.Kind)
			others++
		}
	}
	require.Equal(t, 1, plain)
	require.Equal(t, 1, others)
	require.Len(t, client.StatsBy(nil), 2)

	cancel()
	require.Error(t, <-done)
	require.Error(t, <-done)
	require.NoError(t, first.Unlock())
	oldest := client.Stats().OldestHold
	require.LessOrEqual(t, oldest, time.Since(beforeSecond), "it is that of the second")
	require.Equal(t, 1, client.Stats().Held)
	require.NoError(t, second.Unlock())
	require.Eventually(t, func() bool { return client.Stats() == redlatch.Stats{} }, soon, 10*time.Millisecond)
	require.Empty(t, client.StatsBy(nil))
}

func TestStatsCountCallsInFlightAndInDoubt(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	p := redistest.NewProxy(t, srv.Addr())
	client := open(t, p.URL())
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := l.Lock(ctx); done <- err }()
	require.Eventually(t, func() bool { return srv.Do(t, "EXISTS", l.Name()) == int64(1) }, soon, time.Millisecond) // it was sent
	require.Equal(t, 1, client.Stats().InFlight)
	cancel()
	require.ErrorIs(t, <-done, redlatch.ErrUncertain)
	p.Reset()
	require.Eventually(t, func() bool { return client.Stats().InDoubt == 1 }, soon, time.Millisecond)
	p.Heal()
	require.Eventually(t, func() bool { return client.Stats() == redlatch.Stats{} }, 2*soon, 10*time.Millisecond)
}

// It is cheap, however many holds there are.
func BenchmarkStats(b *testing.B) {
	client, err := redlatch.Open(b.Context(), redistest.Shared(b).URL())
	require.NoError(b, err)
	defer func() { require.NoError(b, client.Close()) }()
	for range 1000 {
		_, err := rlock.New(client, redistest.Key(b)).Lock(b.Context())
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if client.Stats().Held != 1000 {
			b.Fatal("holds are missing")
		}
	}
}
