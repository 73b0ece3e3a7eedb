package rlock

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
)

// unwatched is a hold as it stands when a machine wakes from a sleep that began
// after sent: its lease is over by the clock, and no timer has fired yet.
func unwatched(t *testing.T, sent time.Time) *Hold {
	t.Helper()
	srv, err := embedded.Start(embedded.WithInProcess())
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	client, err := redlatch.New(srv.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	l := New(client, "job")
	set, err := configure(l.engine, nil)
	require.NoError(t, err)
	h := newHold(l, &set)
	h.lease.Hold(sent, time.Second)
	return h
}

func TestU3ErrAsksTheClocksAndNotATimer(t *testing.T) {
	t.Parallel()
	h := unwatched(t, time.Now().Add(-29*time.Second))
	require.ErrorIs(t, h.Err(), redlatch.ErrLost)
	require.Zero(t, h.Remaining())
}

func TestU3ErrOfTheContextAsksTheClocksAndNotATimer(t *testing.T) {
	t.Parallel()
	h := unwatched(t, time.Now())
	ctx := h.Context(t.Context())
	require.NoError(t, ctx.Err())
	h.lease.Hold(time.Now().Add(-29*time.Second), time.Second)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
}

func TestContextsThatEndByThemselvesAreForgotten(t *testing.T) {
	t.Parallel()
	h := unwatched(t, time.Now())
	kept := h.Context(t.Context())
	freed := make(chan struct{}, 1)
	for range 10_000 {
		parent, cancel := context.WithCancel(t.Context())
		ctx, _ := h.Context(parent).(*holdContext)
		runtime.AddCleanup(ctx, func(c chan struct{}) {
			select {
			case c <- struct{}{}:
			default:
			}
		}, freed)
		cancel()
	}
	h.mu.Lock()
	n := len(h.contexts)
	h.mu.Unlock()
	require.LessOrEqual(t, n, 32)
	runtime.GC()
	<-freed
	require.NoError(t, kept.Err())
	require.NoError(t, h.LetExpire())
	require.Error(t, kept.Err())
}
