package rfairlock_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
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

// TryLock does not queue, so it must not remove the place of another user of the owner.
func TestTryLockKeepsOtherPlacesOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		owner := codec.NewOwner(uuid.New(), 1)
		other, _ := fakeClient(t, srv)
		_, end := waitTogether(t, rfairlock.New(other, "job"), 1, rlock.WithOwner(owner))
		_, err := l.TryLock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		calls.onNext(luasrc.FairTry, func(call *transport.Call, done transport.Done) {
			calls.Redigo.Start(call, func(any, error) { done(nil, redlatch.ErrUncertain) })
		})
		_, err = l.TryLock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{owner.String()}, queueOf(t, srv, "job"))
		end()
	})
}

// The callers with one owner share one place, which leaves with the wait it was queued with.
func TestSharedQueueEntryLeavesWithItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		owner := rlock.WithOwner(codec.NewOwner(uuid.New(), 1))
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

// The shared place leaves with the first. The other queues again immediately, although it does not
// poll.
func TestSecondUserOfOwnerQueuesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), codec.NewOwner(uuid.New(), 57)
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

// Callers with one owner do not exclude each other.
func TestUsersOfOwnerAcquireTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), codec.NewOwner(uuid.New(), 57)
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

func TestSharedQueueEntryKeepsLongestWait(t *testing.T) {
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

// A script that removes owners from a queue reads the queue. So many owners leave with a single
// script.
func TestManyWaitersLeaveQueueInFewScripts(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, srv *redistest.MiniServer, client *redlatch.Client, calls *counting, cancel func()){
		"close": func(t *testing.T, _ *redistest.MiniServer, client *redlatch.Client, calls *counting, _ func()) {
			t.Helper()
			resume := calls.stall()
			closed := make(chan error, 1)
			go func() { closed <- client.Close() }()
			synctest.Wait()
			resume()
			require.NoError(t, <-closed)
		},
		"canceled while the server is frozen": func(_ *testing.T, _ *redistest.MiniServer, _ *redlatch.Client, calls *counting, cancel func()) {
			resume := calls.stall()
			cancel()
			time.Sleep(time.Second)
			resume()
		},
		"canceled while the server is unreachable": func(_ *testing.T, srv *redistest.MiniServer, _ *redlatch.Client, _ *counting, cancel func()) {
			srv.FailWith("LOADING Redis is loading the dataset in memory")
			srv.DropConnections()
			cancel()
			time.Sleep(time.Second)
			srv.Heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, calls := inBubble(t)
				holdByHand(t, srv, "job", time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				n := testlevel.Rounds(50, 300)
				for range n {
					await(ctx, rfairlock.New(client, "job"))
				}
				synctest.Wait()
				require.Len(t, queueOf(t, srv, "job"), n)
				leave(t, srv, client, calls, cancel)
				time.Sleep(10 * time.Second)
				requireNoneQueued(t, srv, "job")
				require.LessOrEqual(t, calls.giveUps.Load(), int64(n/3))
				cancel()
			})
		})
	}
}

// A reentry does not wait, so it must not queue when the lock is lost.
func TestReentryOfSharedOwnerNeverQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		hold := take(t, l, rlock.WithOwner(codec.NewOwner(uuid.New(), 57)))
		inner, err := l.Lock(hold.Context(t.Context()))
		require.NoError(t, err)
		require.Equal(t, map[string]string{hold.Owner().String(): "2"}, owners(t, srv, "job"))
		require.NoError(t, inner.Unlock())
		holdByHand(t, srv, "job", time.Hour)
		_, err = l.Lock(hold.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrLost)
		requireNoneQueued(t, srv, "job")
	})
}
