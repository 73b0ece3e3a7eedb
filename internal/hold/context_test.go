package hold_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// unwatched is a hold after a suspend: its lease may have expired before a timer has fired.
func unwatched(t *testing.T, sent time.Time) *rlock.Hold {
	t.Helper()
	client := embeddedClient(t)
	h := &rlock.Hold{}
	hold.Of(h).Init(hold.Of(rlock.New(client, "job")), &hold.Terms{TTL: 30 * time.Second, TTLArg: int64(30_000)}, codec.Owner{}, nil)
	hold.SetLease(hold.Of(h), sent, time.Second)
	return h
}

func TestU3ErrReadsClocksNotTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := unwatched(t, time.Now().Add(-29*time.Second))
		require.ErrorIs(t, h.Err(), redlatch.ErrLost)
		require.Zero(t, h.Remaining())
	})
}

func TestU3ContextErrReadsClocksNotTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := unwatched(t, time.Now())
		ctx := h.Context(t.Context())
		require.NoError(t, ctx.Err())
		hold.SetLease(hold.Of(h), time.Now().Add(-29*time.Second), time.Second)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
	})
}

func TestCanceledContextsAreForgotten(t *testing.T) {
	freed := make(chan struct{}, 1) // cleanups run outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		h := unwatched(t, time.Now())
		kept := h.Context(t.Context())
		for range 1000 {
			parent, cancel := context.WithCancel(t.Context())
			ctx, _ := h.Context(parent).(*hold.HoldContext)
			runtime.AddCleanup(ctx, func(c chan struct{}) {
				select {
				case c <- struct{}{}:
				default:
				}
			}, freed)
			cancel()
		}
		require.LessOrEqual(t, hold.Contexts(hold.Of(h)), 32)
		runtime.GC()
		<-freed
		require.NoError(t, kept.Err())
		require.NoError(t, h.LetExpire())
		require.Error(t, kept.Err())
	})
}

func TestGroupEndsWithFirstMember(t *testing.T) {
	t.Parallel()
	client := embeddedClient(t)
	var holds []*hold.Hold
	for _, name := range []string{"one", "two"} {
		h, err := rlock.New(client, name).TryLock(t.Context())
		require.NoError(t, err)
		holds = append(holds, hold.Of(h))
	}
	group := &hold.Group{}
	group.Add(holds[0])
	group.Add(holds[1])
	require.NoError(t, group.Err())
	require.True(t, hold.EndAlone(holds[0]))
	require.ErrorIs(t, group.Err(), redlatch.ErrMaxHold)
	require.ErrorIs(t, holds[1].Err(), redlatch.ErrMaxHold)
}

func TestOnlyLiveHoldsAreOuter(t *testing.T) {
	t.Parallel()
	client := embeddedClient(t)
	for end, given := range map[string]func(*rlock.Hold) error{
		"unlocked":       (*rlock.Hold).Unlock,
		"left to expire": (*rlock.Hold).LetExpire,
	} {
		h, err := rlock.New(client, end).TryLock(t.Context())
		require.NoError(t, err)
		group := &hold.Group{}
		group.Add(hold.Of(h))
		alone, together := context.WithoutCancel(h.Context(t.Context())), context.WithoutCancel(group.Context(t.Context()))
		require.Len(t, engine.OuterOf(alone), 1)
		require.Len(t, engine.OuterOf(together), 1)
		require.NoError(t, given(h), end)
		require.Empty(t, engine.OuterOf(alone), end)
		require.Empty(t, engine.OuterOf(together), end)
	}
}
