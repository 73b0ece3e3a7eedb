package pubsub

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// waitLimit is far more than anything awaited takes. Reaching it is a failure.
const waitLimit = 30 * time.Second

func mustSubscribe(t testing.TB, s *Subscriber, channel string) transport.Subscription {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	l, err := s.Subscribe(ctx, channel)
	require.NoError(t, err)
	return l
}

// subscribeLater subscribes without a deadline, on a goroutine of its own.
func subscribeLater(s *Subscriber, channel string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Subscribe(context.Background(), channel)
		done <- err
	}()
	return done
}

// awaitEvent returns the next event, which must come.
func awaitEvent(t testing.TB, l transport.Subscription) transport.Event {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.True(t, ok, "subscription failed: %v", l.Err())
		return e
	case <-time.After(waitLimit):
		require.FailNow(t, "no event")
		return transport.Event{}
	}
}

func requireFailed(t testing.TB, l transport.Subscription) error {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.False(t, ok, "an event instead of the end: %v", e)
	case <-time.After(waitLimit):
		require.FailNow(t, "subscription goes on")
	}
	require.Error(t, l.Err())
	return l.Err()
}

func requireNoEvent(t testing.TB, l transport.Subscription) {
	t.Helper()
	select {
	case e, ok := <-l.Events():
		require.FailNow(t, "unexpected", "event %v, open %v", e, ok)
	default:
	}
}

func mustClose(t testing.TB, s *Subscriber) {
	t.Helper()
	require.NoError(t, s.Close())
	st := s.Stats()
	require.Zero(t, st.Channels)
	require.Zero(t, st.Listeners)
	require.False(t, st.Connected)
}
