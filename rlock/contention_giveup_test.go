package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// Where many want a lock, a wait mostly ends while an attempt is under way.
// That is contention all the same, and no trouble with Redis.
func TestU33WaitThatEndsDuringAnAttemptIsDistinguishedFromTroubleWithRedis(t *testing.T) {
	const latency = 200 * time.Millisecond
	step := time.Duration(testlevel.Rounds(350, 70)) * time.Millisecond
	for wait := 6 * latency; wait < 5*time.Second; wait += step {
		synctest.Test(t, func(t *testing.T) {
			w, client := wired(t, latency, redlatch.WithPollCap(latency))
			holdByHand(t, w.srv, "job", time.Hour)
			l := rlock.New(client, "job")
			began := time.Now()
			_, err := l.Lock(t.Context(), rlock.WithWait(wait))
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.Equal(t, wait, time.Since(began))

			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err = l.Lock(ctx)
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// A reply that is long overdue is a transport error, even if the lock was
// held before.
func TestU33WaitThatEndsWhileRedisIsSilentIsNoContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond, redlatch.WithPollCap(time.Second))
		holdByHand(t, w.srv, "job", time.Hour)
		waits := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(7*time.Second))
		time.Sleep(5 * time.Second)
		w.hole.Store(true)
		err := waits.failed(t, time.Minute)
		require.Equal(t, 7*time.Second, waits.took)
		requireTransportError(t, err)
	})
}

// A caller whose wait is shorter than a round trip still learns whether the lock is
// held.
func TestShortWaitDoesNotCutTheFirstAttemptShort(t *testing.T) {
	const latency = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, latency)
		holdByHand(t, w.srv, "held", time.Hour)
		loadScripts(t, client)
		for _, wait := range []time.Duration{time.Millisecond, latency / 2} {
			began := time.Now()
			_, err := rlock.New(client, "held").Lock(t.Context(), rlock.WithWait(wait))
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			require.Equal(t, latency, time.Since(began))
			hold, err := rlock.New(client, "free").Lock(t.Context(), rlock.WithWait(wait))
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
		}
		w.hole.Store(true)
		began := time.Now()
		_, err := rlock.New(client, "held").Lock(t.Context(), rlock.WithWait(time.Millisecond))
		requireTransportError(t, err)
		require.Equal(t, 500*time.Millisecond, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), latency)
		defer cancel()
		began = time.Now()
		_, err = rlock.New(client, "another").Lock(ctx, rlock.WithWait(time.Millisecond))
		requireTransportError(t, err)
		require.Equal(t, latency, time.Since(began), "the context is a bound on all")
	})
}
