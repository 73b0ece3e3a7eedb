package rlock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// shutsDown begins to shut the client down and returns what tells its result.
func shutsDown(ctx context.Context, client *redlatch.Client) <-chan error {
	done := make(chan error, 1)
	go func() { done <- client.Shutdown(ctx) }()
	return done
}

// resultOf returns what comes within a bounded time.
func resultOf(t *testing.T, done <-chan error, within time.Duration) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(within):
		require.FailNow(t, "no result", "within %v", within)
		return nil
	}
}

// Not parallel: it counts goroutines.
func TestCloseEndsAThousandWaitersAndAHundredHolds(t *testing.T) {
	const holds, waitersEach = 100, 10
	s := redistest.Start(t)
	baseline := runtime.NumGoroutine()
	client, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithCommandTimeout(closeTimeout))
	require.NoError(t, err)
	var held []*rlock.Hold
	var waiters []*waiter
	for i := range holds {
		l := rlock.New(client, fmt.Sprintf("lock-%d", i))
		if i%2 == 0 { // these stand in the local queue, those listen
			held = append(held, take(t, l))
		} else {
			held = append(held, take(t, rlock.New(client, l.Name()+"-other")))
			holdByHand(t, s, l.Name(), forever)
		}
		for range waitersEach {
			waiters = append(waiters, await(t.Context(), l))
		}
	}
	until(t, soon, "the listeners", func() bool { return len(s.Channels(t)) == holds/2 })
	for _, w := range waiters {
		w.stillWaits(t)
	}
	closes(t, client, closeTimeout+slack)()
	for _, w := range waiters {
		require.ErrorIs(t, w.failed(t, soon), redlatch.ErrClosed)
	}
	for _, h := range held {
		require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
		require.True(t, locked(t, s, h.Name()), "it is left to its lease")
	}
	until(t, soon, "no connection", func() bool { return s.Clients(t) == 0 })
	until(t, soon, "no goroutine", func() bool { return runtime.NumGoroutine() <= baseline+1 }) // one of the test's own connection
}

func TestU38ShutdownWaitsForTheHoldsAndForNothingElse(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	a, b := take(t, rlock.New(client, "a"), rlock.WithWatchdog(shortLease)), take(t, rlock.New(client, "b"))
	holdByHand(t, s, "foreign", forever)
	local, remote := await(t.Context(), rlock.New(client, "a")), await(t.Context(), rlock.New(client, "foreign"))
	awaitWaiters(t, s, "foreign")

	done := shutsDown(t.Context(), client)
	require.ErrorIs(t, local.failed(t, atOnce), redlatch.ErrClosed)
	require.ErrorIs(t, remote.failed(t, atOnce), redlatch.ErrClosed)
	requireClosedFor(t, rlock.New(client, "c"))
	_, err := rlock.New(client, "a").Lock(a.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrClosed, "a re-entry is new work, too")

	require.NoError(t, b.Unlock())
	awaitRenewal(t, s, "a") // it goes on as before
	require.NoError(t, a.Err())
	require.Empty(t, done)
	require.NoError(t, a.Unlock())
	require.NoError(t, resultOf(t, done, atOnce))
	require.False(t, locked(t, s, "a"))
	require.False(t, locked(t, s, "b"))
	require.Zero(t, s.Clients(t))
	require.NoError(t, client.Shutdown(t.Context()), "and again")
}

func TestU38ShutdownWhoseContextEndsSaysHowManyHoldsWereLeft(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	a, b := take(t, rlock.New(client, "a")), take(t, rlock.New(client, "b"))
	ctx, cancel := context.WithCancel(t.Context())
	done := shutsDown(ctx, client)
	awaitClosedFor(t, rlock.New(client, "c"))
	require.NoError(t, a.Err())
	cancel()
	err := resultOf(t, done, soon)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "2 holds")
	for _, h := range []*rlock.Hold{a, b} {
		require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
		require.ErrorIs(t, h.Unlock(), redlatch.ErrClosed)
		require.True(t, locked(t, s, h.Name()))
	}
	require.Zero(t, s.Clients(t))
}

// awaitClosedFor returns when the client refuses new work.
func awaitClosedFor(t *testing.T, l *rlock.Lock) {
	t.Helper()
	until(t, soon, "new work is refused", func() bool {
		_, err := l.IsLocked(t.Context())
		return assert.ObjectsAreEqual(err != nil, true)
	})
	requireClosedFor(t, l)
}

func TestU38AHoldIsHandedOverDuringShutdown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	hold := take(t, rlock.New(client, "a"))
	done := shutsDown(t.Context(), client)
	awaitClosedFor(t, rlock.New(client, "c"))
	owner, err := hold.HandOver()
	require.NoError(t, err)
	require.NoError(t, resultOf(t, done, atOnce))
	resumed, err := rlock.New(connect(t, s.URL()), "a").Resume(t.Context(), owner)
	require.NoError(t, err)
	require.NoError(t, resumed.Unlock())
}

func TestU38ShutdownAndCloseTogetherEndAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	hold := take(t, rlock.New(client, "a"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	patient := []<-chan error{shutsDown(t.Context(), client), shutsDown(t.Context(), client)}
	awaitClosedFor(t, rlock.New(client, "c"))
	for _, done := range patient {
		require.Empty(t, done)
	}
	impatient := shutsDown(ended, client)
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	require.NoError(t, resultOf(t, closed, soon))
	_ = resultOf(t, impatient, soon) // Close may have been faster
	for _, done := range patient {
		require.ErrorIs(t, resultOf(t, done, soon), redlatch.ErrClosed, "a hold was left")
	}
	require.ErrorIs(t, hold.Err(), redlatch.ErrClosed)
	require.True(t, locked(t, s, "a"))
	require.Zero(t, s.Clients(t))
}

// A grant may be on its way when the client shuts down: it is either a hold that
// Shutdown waits for, or it is given back.
func TestU38ShutdownBesideGrantsLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for round := range 30 {
		client, err := redlatch.Open(t.Context(), s.URL())
		require.NoError(t, err)
		l := rlock.New(client, fmt.Sprintf("lock-%d", round))
		ended := make(chan error, 8)
		for range cap(ended) {
			go func() {
				for {
					hold, err := l.Lock(context.Background())
					if err != nil {
						ended <- err
						return
					}
					if err := hold.Unlock(); err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		<-time.After(time.Duration(round) * 200 * time.Microsecond)
		require.NoError(t, client.Shutdown(t.Context()))
		for range cap(ended) {
			require.ErrorIs(t, resultOf(t, ended, soon), redlatch.ErrClosed)
		}
		require.False(t, locked(t, s, l.Name()))
	}
}
