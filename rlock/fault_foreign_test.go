package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// swapped lets a client hold a lock, gives the lock to another owner for a
// minute, and returns the client's hold.
func swapped(t *testing.T, opts ...rlock.Option) (*redistest.Server, *rlock.Hold) {
	t.Helper()
	s, client := onShared(t)
	hold := take(t, rlock.New(client, redistest.Key(t)), opts...)
	holdByHand(t, s, hold.Name(), forever)
	return s, hold
}

// requireUntouched holds that the other holder has what it had, and no more time.
func requireUntouched(t *testing.T, s *redistest.Server, key string, since time.Time) {
	t.Helper()
	require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s, key))
	left := ttl(t, s, key)
	require.LessOrEqual(t, left, forever-time.Since(since)+slack)
	require.Greater(t, left, forever-time.Since(since)-slack)
}

func TestU10UnlockOfALostLockLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	s, hold := swapped(t)
	began := time.Now()
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	requireUntouched(t, s, hold.Name(), began)
}

func TestU10RenewalOfALostLockLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	s, hold := swapped(t, rlock.WithWatchdog(shortLease))
	began := time.Now()
	awaitClosed(t, hold.Context(t.Context()).Done(), shortLease/3+slack, "the loss")
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	requireUntouched(t, s, hold.Name(), began)
}

func TestU10HolderWhoseLeaseEndedLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	s, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	first := take(t, l, rlock.WithLease(shortLease))
	lost, ctx := watchLoss(t, first), first.Context(t.Context())
	second := await(t.Context(), rlock.New(connect(t, s.URL()), l.Name()), rlock.WithLease(forever)).
		acquired(t, shortLease+slack)
	granted := time.Now()
	// The contexts have ended, though their waiters may not have run yet.
	require.Error(t, ctx.Err())
	select {
	case <-ctx.Done():
	default:
		require.FailNow(t, "not lost, and another has the lock")
	}
	requireLostBy(t, first, lost, granted.Add(slack))
	require.Equal(t, map[string]string{second.Owner().String(): "1"}, owners(t, s, l.Name()))
	require.Greater(t, ttl(t, s, l.Name()), forever-time.Since(granted)-slack)
	require.NoError(t, second.Err())
	require.NoError(t, second.Unlock())
}

// When a frozen server wakes after the lease, it finds the holder's renewal and
// the next one's acquire side by side.
func TestU10RenewalThatAFrozenServerRunsLateLeavesTheNextHolderAlone(t *testing.T) {
	testlevel.All(t, "a real lease, 12 s")
	t.Parallel()
	s := redistest.Start(t)
	holder := connect(t, s.URL(), redlatch.WithWatchdogTimeout(forever), earlyLoss()) // keeps its connection
	rival := connect(t, s.URL(), redlatch.WithCommandTimeout(forever), redlatch.WithWatchdogTimeout(2*forever))
	loadScripts(t, rival)
	l := rlock.New(holder, redistest.Key(t))
	hold := take(t, l, rlock.WithWatchdog(reportedLease))
	lost := watchLoss(t, hold)
	s.Pause()
	frozen := time.Now()
	next := await(t.Context(), rlock.New(rival, l.Name()), rlock.WithLease(forever))
	requireLostBy(t, hold, lost, frozen.Add(reportedLease))
	next.stillWaits(t)
	<-time.After(time.Until(frozen.Add(reportedLease)))
	s.Resume()
	second := next.acquired(t, slack)
	require.Equal(t, map[string]string{second.Owner().String(): "1"}, owners(t, s, l.Name()))
	require.NoError(t, second.Unlock())
}
