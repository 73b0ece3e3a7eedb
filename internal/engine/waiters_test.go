package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// hearing is a transport with subscriptions and subscriber counts.
type hearing struct {
	*faketransport.Fake
	counts []int64
	err    error
	mute   bool // counts nothing
	open   int  // subscriptions
}

func (h *hearing) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	h.open++
	return &subscribedTo{h}, nil
}

func (h *hearing) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	if h.mute {
		<-ctx.Done()
		return nil, fmt.Errorf("replica 10.0.0.1:1: %w", context.Cause(ctx))
	}
	if h.err == nil && (channels[0] != "ours" || len(channels) != len(h.counts)) {
		return nil, errors.New("queried for other channels")
	}
	return h.counts, h.err
}

type subscribedTo struct{ h *hearing }

func (s *subscribedTo) Events() <-chan transport.Event { return nil }
func (s *subscribedTo) Err() error                     { return nil }
func (s *subscribedTo) Close()                         { s.h.open-- }

func TestZeroListenersCountsOnlyWithProof(t *testing.T) {
	t.Parallel()
	tr := &hearing{Fake: &faketransport.Fake{}, counts: []int64{1, 0, 2}}
	e, _ := engineOver(t, tr)
	counts, err := e.ProvenListeners(t.Context(), "ours", "a", "b")
	require.NoError(t, err)
	require.Equal(t, []int64{0, 2}, counts)

	tr.counts = []int64{0, 0, 2}
	_, err = e.ProvenListeners(t.Context(), "ours", "a", "b")
	require.ErrorIs(t, err, ErrNotCounted)
	require.ErrorIs(t, err, ErrOwnNotCounted)

	tr.err = errors.New("no right")
	_, err = e.ProvenListeners(t.Context(), "ours", "a", "b")
	require.ErrorIs(t, err, ErrNotCounted)
	require.ErrorIs(t, err, tr.err)
	require.Zero(t, tr.open, "it no longer listens")
}

func TestFailedCountStatesReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &hearing{Fake: &faketransport.Fake{}, mute: true}
		e, _ := engineOver(t, tr)
		_, err := e.ProvenListeners(t.Context(), "ours", "a")
		require.ErrorIs(t, err, ErrNotCounted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no reply within")
		require.ErrorContains(t, err, "replica 10.0.0.1:1", "which server did not answer")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.ProvenListeners(ctx, "ours", "a")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, e.Close())
		_, err = e.ProvenListeners(t.Context(), "ours", "a")
		require.ErrorIs(t, err, ErrClosed)
		require.Zero(t, tr.open)

		unsubscribed, _ := engineOver(t, &faketransport.Fake{})
		_, err = unsubscribed.ProvenListeners(t.Context(), "ours", "a")
		require.ErrorIs(t, err, ErrNotCounted, "the transport cannot listen")
	})
}

func TestMaxWaitersLimitsQueue(t *testing.T) {
	t.Parallel()
	w, _ := engineOver(t, &faketransport.Fake{})
	w.MaxWaiters = 2
	a, b, c := &Waiting{Name: "a"}, &Waiting{Name: "b"}, &Waiting{Name: "c"}
	waiting := func() (names []string) {
		for _, one := range w.WaitingNow() {
			names = append(names, one.Name)
		}
		return names
	}
	require.NoError(t, w.BeginWait(a))
	require.NoError(t, w.BeginWait(b))
	require.ErrorIs(t, w.BeginWait(c), errTooMany)
	require.Equal(t, int64(2), w.Waiting())
	require.ElementsMatch(t, []string{"a", "b"}, waiting())
	w.EndWait(b)
	require.NoError(t, w.BeginWait(c))
	require.ElementsMatch(t, []string{"a", "c"}, waiting())
	w.EndWait(a)
	require.Equal(t, []string{"c"}, waiting())
	w.EndWait(c)
	require.Empty(t, waiting())

	w.MaxWaiters = 0
	for range 100 {
		require.NoError(t, w.BeginWait(&Waiting{}))
	}
}
