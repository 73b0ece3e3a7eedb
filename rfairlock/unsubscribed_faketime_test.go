package rfairlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// neverSubscribes lets Subscribe fail when its context ends, after calling outOfTime.
func neverSubscribes(outOfTime func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		outOfTime()
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, ctx.Err())
	}
}

// Subscribing ends with a deadline, which is not the reason why the wait ends.
func TestWaiterErrorNamesContextCause(t *testing.T) {
	errBoss := errors.New("the boss called")
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		calls.subscribe = neverSubscribes(func() { cancel(errBoss) })
		holdByHand(t, srv, "job", time.Hour)
		err := await(ctx, rfairlock.New(client, "job")).failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorIs(t, err, errBoss)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

// The wait ends at the moment when subscribing fails.
func TestWaiterErrorAtTimeoutNamesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		const wait = 3100 * time.Millisecond
		over := time.Now().Add(wait + 1)
		calls.subscribe = neverSubscribes(func() { time.Sleep(time.Until(over)) })
		holdByHand(t, srv, "job", time.Hour)
		err := await(t.Context(), rfairlock.New(client, "job"), rlock.WithWait(wait)).failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

// Losing the reply costs the waiter its place.
func TestUnsubscribedWaiterSurvivesLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		calls.subscribe = neverSubscribes(func() {})
		var attempts atomic.Int64
		calls.intercept = func(call *transport.Call, done transport.Done) bool {
			if call.Script != luasrc.FairAcquire || attempts.Add(1) != 2 {
				return false
			}
			done(nil, fmt.Errorf("%w: cut", redlatch.ErrUncertain))
			return true
		}
		holdByHand(t, srv, "job", time.Hour)
		w := await(t.Context(), rfairlock.New(client, "job"))
		time.Sleep(time.Minute)
		w.stillWaits(t)
		require.Greater(t, attempts.Load(), int64(2))
		srv.Do(t, "DEL", "job")
		require.NoError(t, w.acquired(t, time.Minute).Unlock())
	})
}
