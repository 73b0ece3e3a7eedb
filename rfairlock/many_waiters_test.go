package rfairlock_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestU24QueuedCallerThatCannotSubscribePolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, redlatch.WithPollCap(300*time.Millisecond))
		calls.subscribe = func(context.Context) error { return redlatch.ErrNotSent }
		subscribes, _ := fakeClient(t, srv, noPoll())
		other := rfairlock.New(subscribes, "job")
		hold := take(t, other)
		first := await(t.Context(), rfairlock.New(client, "job"))
		synctest.Wait()
		second := await(t.Context(), other)
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		require.NoError(t, hold.Unlock())
		require.NoError(t, first.acquired(t, promptly).Unlock())
		require.NoError(t, second.acquired(t, time.Second).Unlock())
		requireNoTrace(t, srv, "job")
	})
}

// queueMany queues n callers.
func queueMany(ctx context.Context, t *testing.T, srv *redistest.Server, l *rlock.Lock, n int) []*waiter {
	t.Helper()
	all := make([]*waiter, n)
	for i := range all {
		all[i] = await(ctx, l)
	}
	until(t, time.Minute, "all are queued", func() bool {
		queued := len(queueOf(t, srv, l.Name()))
		if queued != n {
			for _, w := range all {
				w.stillWaits(t)
			}
		}
		return queued == n
	})
	return all
}

// crowd is many waiters of one client.
type crowd struct {
	srv    *redistest.Server
	proxy  *redistest.Proxy
	client *redlatch.Client
	cancel context.CancelFunc
	all    []*waiter
}

// A script that removes owners from a queue reads the queue. So many owners leave by one script.
func TestManyWaitersLeaveTheQueueByFewScripts(t *testing.T) { //nolint:tparallel // one crowd at a time is enough
	t.Parallel()
	for name, c := range map[string]struct {
		waiters int
		queue   func(p *redistest.Proxy) // prepares for queueing
		leave   func(t *testing.T, c *crowd)
		err     error
	}{
		"lost replies": {500, func(p *redistest.Proxy) { p.Blackhole(redistest.ToClient) }, func(_ *testing.T, c *crowd) {
			c.proxy.Reset()
			c.proxy.Heal()
		}, redlatch.ErrUncertain},
		"close": {5000, nil, func(t *testing.T, c *crowd) {
			t.Helper()
			until(t, time.Minute, "all listen", func() bool { return len(c.srv.Channels(t)) == len(c.all) })
			require.NoError(t, c.client.Close())
			require.Empty(t, queueOf(t, c.srv, "job"))
		}, redlatch.ErrClosed},
		"canceled next to another hold": {4000, nil, func(t *testing.T, c *crowd) {
			t.Helper()
			kept := take(t, rlock.New(c.client, "kept"), rlock.WithWatchdog(6*time.Second))
			t.Cleanup(func() { require.NoError(t, kept.Unlock()) })
			c.cancel()
		}, context.Canceled},
		"canceled while the server is frozen": {5000, nil, func(t *testing.T, c *crowd) {
			t.Helper()
			c.srv.Pause()
			c.cancel()
			<-time.After(time.Second)
			c.srv.Resume()
		}, context.Canceled},
		"canceled while the server is unreachable": {5000, nil, func(t *testing.T, c *crowd) {
			t.Helper()
			c.proxy.Refuse(true)
			c.proxy.Reset()
			c.cancel()
			<-time.After(time.Second)
			c.proxy.Refuse(false)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.waiters > 500 {
				testlevel.All(t, "thousands of waiters")
			}
			srv := redistest.Start(t)
			proxy, client := through(t, srv, redlatch.WithCommandTimeout(soon)) // the machine may be busy
			l := rfairlock.New(client, "job")
			holdByHand(t, srv, "job", time.Hour)
			if c.queue != nil {
				c.queue(proxy)
			}
			ctx, cancel := context.WithCancel(t.Context())
			all := queueMany(ctx, t, srv, l, c.waiters)
			before := srv.CommandStats(t)["lrange"]
			c.leave(t, &crowd{srv, proxy, client, cancel, all})
			left := time.Now()
			for _, w := range all {
				if err := w.failed(t, soon); c.err != nil {
					require.ErrorIs(t, err, c.err)
				}
			}
			until(t, time.Minute, "none is queued", func() bool { return len(queueOf(t, srv, "job")) == 0 })
			reads := srv.CommandStats(t)["lrange"] - before
			t.Logf("gone after %v, with %d reads", time.Since(left), reads)
			parts := (c.waiters + 999) / 1000 // in which a script reads the queue
			require.Less(t, int(reads), parts*c.waiters/10)
		})
	}
}

// TryLock does not queue, so it must not remove the place of another user of the owner.
func TestTryLockKeepsOtherPlacesOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		var lose atomic.Bool
		calls.intercept = func(call *transport.Call, done transport.Done) bool {
			if call.Script != luasrc.FairTry || !lose.CompareAndSwap(true, false) {
				return false
			}
			calls.Redigo.Start(call, func(any, error) { done(nil, redlatch.ErrUncertain) })
			return true
		}
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		owner := redlatch.NewOwner(uuid.New(), 1)
		other, _ := fakeClient(t, srv)
		_, end := waitTogether(t, rfairlock.New(other, "job"), 1, rlock.WithOwner(owner))
		_, err := l.TryLock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		lose.Store(true)
		_, err = l.TryLock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{owner.String()}, queueOf(t, srv, "job"))
		end()
	})
}

// The callers of one owner share one place, which leaves with the wait it was queued with.
func TestSharedPlaceLeavesWithItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		owner := rlock.WithOwner(redlatch.NewOwner(uuid.New(), 1))
		_, endFirst := waitTogether(t, l, 1, owner, rlock.WithWait(40*time.Second))
		_, endSecond := waitTogether(t, l, 1, owner)
		_, endLast := waitTogether(t, l, 1)
		last := queueOf(t, srv, "job")[1]
		before := deadlinesOf(t, srv, "job")[last]
		endSecond()
		synctest.Wait()
		require.Equal(t, before-40_000, deadlinesOf(t, srv, "job")[last])
		endLast()
		endFirst()
	})
}

// A reentry does not wait, so it must not queue when the lock is lost.
func TestReentryOfASharedOwnerNeverQueues(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	l := rfairlock.New(connect(t, srv.URL()), redistest.Key(t))
	hold := take(t, l, rlock.WithOwner(redlatch.NewOwner(uuid.New(), 57)))
	inner, err := l.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	require.Equal(t, map[string]string{hold.Owner().String(): "2"}, owners(t, srv, l.Name()))
	require.NoError(t, inner.Unlock())
	ctx, cancel := context.WithTimeout(hold.Context(t.Context()), soon)
	defer cancel()
	holdByHand(t, srv, l.Name(), forever)
	_, err = l.Lock(ctx)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.Empty(t, queueOf(t, srv, l.Name()))
	require.Empty(t, deadlinesOf(t, srv, l.Name()))
}

// The shared place leaves with the first. The other queues again immediately, although it does not
// poll.
func TestUserOfAnOwnerOutlivesTheOtherOneInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 57)
		first := await(t.Context(), l)
		synctest.Wait()
		stayer := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		leaver := await(ctx, l, rlock.WithOwner(owner))
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		cancel()
		<-leaver.done
		synctest.Wait()
		queue := queueOf(t, srv, "job")
		require.Len(t, queue, 2)
		require.Equal(t, owner.String(), queue[1])
		freeByHand(t, srv, "job")
		require.NoError(t, first.acquired(t, time.Second).Unlock())
		require.NoError(t, stayer.acquired(t, time.Second).Unlock())
	})
}

// Users of one owner do not exclude each other.
func TestBothUsersOfAnOwnerGetInWhenItsTurnHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 57)
		one := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		last := await(t.Context(), l)
		synctest.Wait()
		other := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		freed := time.Now()
		freeByHand(t, srv, "job")
		holds := []*rlock.Hold{one.acquired(t, time.Hour), other.acquired(t, time.Hour)}
		require.Zero(t, time.Since(freed))
		require.Equal(t, map[string]string{owner.String(): "2"}, owners(t, srv, "job"))
		last.stillWaits(t)
		for _, h := range holds {
			require.NoError(t, h.Unlock())
		}
		require.NoError(t, last.acquired(t, time.Second).Unlock())
	})
}

func TestLongestWaitOfAllIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, rfairlock.New(client, "job"), rlock.WithWait(math.MaxInt64))
		synctest.Wait()
		due := deadlinesOf(t, srv, "job")[queueOf(t, srv, "job")[0]]
		require.Greater(t, due, time.Now().Add(100*365*24*time.Hour).UnixMilli())
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}
