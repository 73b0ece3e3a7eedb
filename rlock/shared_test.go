package rlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestHoldsSharingOwnerKeepTheirLeases(t *testing.T) {
	for name, second := range map[string]func(*rlock.Lock, rlock.Option) (*rlock.Hold, error){
		"acquired with a short lease": func(l *rlock.Lock, same rlock.Option) (*rlock.Hold, error) {
			return l.Lock(context.Background(), same, rlock.WithLease(2*time.Second))
		},
		"acquired and unlocked": func(l *rlock.Lock, same rlock.Option) (*rlock.Hold, error) {
			h, err := l.Lock(context.Background(), same, rlock.WithLease(2*time.Second))
			if err == nil {
				err = h.Unlock()
			}
			return h, err
		},
		"acquired and renewed": func(l *rlock.Lock, same rlock.Option) (*rlock.Hold, error) {
			return l.Lock(context.Background(), same, rlock.WithWatchdog(3*time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t, redlatch.WithWatchdogTimeout(3*time.Second))
				l, owner := rlock.New(client, "lock"), rlock.WithOwner(newOwner())
				first := take(t, l, owner, rlock.WithLease(time.Minute))
				_, err := second(l, owner)
				require.NoError(t, err)
				require.Equal(t, time.Minute, ttl(t, srv, "lock"), "the full lease")
				time.Sleep(30 * time.Second)
				synctest.Wait()
				require.NoError(t, first.Err())
				require.Greater(t, ttl(t, srv, "lock"), 29*time.Second)
				require.NoError(t, first.Unlock())
			})
		})
	}
}

func TestLostHoldNoLongerCountsForOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "lock")
		outer := take(t, l, rlock.WithOwner(newOwner()))
		inner, err := l.Lock(outer.Context(t.Context()), rlock.WithLease(5*time.Second))
		require.NoError(t, err)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, inner.Err(), redlatch.ErrLost)
		require.EqualValues(t, 1, countOf(t, l, outer))
		require.NoError(t, outer.Unlock())
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestUnlockAfterMaxHoldKeepsNextHoldOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l, owner := rlock.New(client, "lock"), rlock.WithOwner(newOwner())
		hold := take(t, l, owner, rlock.WithMaxHold(time.Second), rlock.WithWatchdog(3*time.Second))
		time.Sleep(10 * time.Second)
		other := take(t, rlock.New(fakeClient(t, srv), "lock"), owner)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrMaxHold)
		require.EqualValues(t, 1, countOf(t, l, other))
		require.NoError(t, other.Unlock())
	})
}

// A re-entry waits for at most one command timeout until an inner unlock is resolved.
func TestReentryWaitForUncertainUnlockIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lan, client := wired(t, 0, redlatch.WithCommandTimeout(time.Second))
		l := rlock.New(client, "job")
		hold := take(t, l)
		inner := again(t, l, hold)
		lan.hole.Store(true)
		require.NoError(t, inner.Unlock())
		for _, opts := range [][]rlock.Option{nil, {rlock.WithWait(0)}} {
			lock := l.TryLock
			if opts != nil {
				lock = l.Lock
			}
			w := inBackground(func() (*rlock.Hold, error) { return lock(hold.Context(t.Context()), opts...) })
			err := w.failed(t, time.Second+time.Millisecond)
			require.ErrorIs(t, err, redlatch.ErrUncertain)
			require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
		}
		lan.heal()
		require.NoError(t, hold.Unlock())
	})
}

// An uncertain attempt counts as an inner hold until it is resolved.
func TestReentryDuringUncertainReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lan, client := wired(t, 0, redlatch.WithCommandTimeout(time.Second))
		l := rlock.New(client, "job")
		hold := take(t, l)
		require.NoError(t, again(t, l, hold).Unlock())
		lan.hole.Store(true)
		_, err := l.TryLock(hold.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		_, err = l.TryLock(hold.Context(t.Context()))
		checkHeld(t, err)
		require.ErrorContains(t, err, "held by an inner hold of this context")
		waiting := waitInner(l, hold)
		lan.heal()
		require.NoError(t, waiting.acquired(t, time.Minute).Unlock())
		require.EqualValues(t, 1, countOf(t, l, hold))

		lan.hole.Store(true)
		_, err = l.TryLock(hold.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.ErrorIs(t, waitInner(l, hold).failed(t, 30*time.Second), redlatch.ErrLost)
	})
}

func TestMaxWaitersKeepsPresentWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithMaxWaiters(1))
		l := rlock.New(client, "lock")
		loadScripts(t, client)
		hold := take(t, l)
		w := await(t.Context(), l)
		synctest.Wait()
		holdByHand(t, srv, "lock", 20*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				for ctx.Err() == nil {
					_, err := l.Lock(ctx)
					if errors.Is(err, redlatch.ErrNotSent) && ctx.Err() != nil {
						return // the time had already passed
					}
					assert.ErrorIs(t, err, redlatch.ErrNotAcquired)
					time.Sleep(time.Millisecond)
				}
			})
		}
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		others.Wait()
		require.NoError(t, w.acquired(t, time.Minute).Unlock())
	})
}

// The reply to a re-entry is lost, and Redis is down for longer than the outer hold's lease. The lock may
// have the inner hold's lease, so the release is retried for that long.
func TestReleaseRetriedForLeaseOfUncertainReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		outer := take(t, l)
		require.NoError(t, again(t, l, outer).Unlock()) // loads the scripts
		w.deaf.Store(true)
		_, err := l.Lock(outer.Context(t.Context()), rlock.WithLease(10*time.Minute))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		w.deaf.Store(false)
		w.refuse.Store(true)
		w.reset()
		require.Error(t, outer.Unlock())
		time.Sleep(5 * time.Minute)
		require.True(t, locked(t, w.srv, "job"))
		w.refuse.Store(false)
		time.Sleep(10 * time.Second)
		require.False(t, locked(t, w.srv, "job"))
	})
}

// outOfReach is a transport that can be disconnected.
type outOfReach struct {
	transport.Transport
	away atomic.Bool
}

func (o *outOfReach) Start(call *transport.Call, done transport.Done) {
	if o.away.Load() {
		done(nil, redlatch.ErrNotSent)
		return
	}
	time.AfterFunc(5*time.Millisecond, func() { o.Transport.Start(call, done) })
}

// Resolving the inner unlock releases the lock, so the outer unlock finds it gone.
func TestUnlockAfterResolvedInnerUnlockSucceeds(t *testing.T) {
	t.Parallel()
	for name, enter := range map[string]func(t *testing.T, l *rlock.Lock) *rlock.Hold{
		"freed": func(t *testing.T, l *rlock.Lock) *rlock.Hold {
			t.Helper()
			return take(t, l)
		},
		"held until the lease of a hold at its maximum expires": func(t *testing.T, l *rlock.Lock) *rlock.Hold {
			t.Helper()
			outer := take(t, l, rlock.WithMaxHold(2*time.Second))
			hold := again(t, l, outer)
			time.Sleep(time.Minute)
			require.ErrorIs(t, outer.Err(), redlatch.ErrMaxHold)
			return hold
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, _ := inBubble(t)
				tr := &outOfReach{Transport: redigoTransport(srv)}
				client := over(t, tr)
				l := rlock.New(client, "job")
				for range testlevel.Rounds(8, 20) { // the pauses decide which is first
					hold := enter(t, l)
					inner := again(t, l, hold)
					tr.away.Store(true)
					require.NoError(t, inner.Unlock(), "resolved in the background")
					back := time.AfterFunc(800*time.Millisecond, func() { tr.away.Store(false) })
					require.NoError(t, hold.Unlock())
					require.False(t, back.Stop())
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
