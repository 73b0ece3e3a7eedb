package rfairlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestU14UnlockBetweenAttemptAndSubscriptionIsNotMissed(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	p, client := through(t, srv, noPoll())
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	held := p.HoldMatching(redistest.ToServer, codec.OwnerChannel(l.Name(), ""))
	w := await(t.Context(), l)
	awaitQueue(t, srv, l.Name(), 1)
	awaitClosed(t, held.Seen(), "the subscription")
	freeByHand(t, srv, l.Name())
	held.Release()
	require.NoError(t, w.acquired(t, promptly).Unlock())
}

// A release notifies one waiter, which makes one attempt.
func TestReleaseWakesOnlyTheFirstInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, holder, _ := inBubble(t, noPoll())
		one, first := fakeClient(t, srv, noPoll())
		two, second := fakeClient(t, srv, noPoll())
		lease := rlock.WithLease(time.Hour)
		hold := take(t, rfairlock.New(holder, "job"), lease)
		conn := redis.PubSubConn{Conn: srv.Dial(t)}
		require.NoError(t, conn.PSubscribe(codec.LockChannel("job")+"*"))
		require.IsType(t, redis.Subscription{}, conn.Receive())
		var all []*waiter
		for range 5 {
			for _, client := range []*redlatch.Client{one, two} {
				w, _ := waitTogether(t, rfairlock.New(client, "job"), 1, lease)
				all = append(all, w...)
			}
		}
		asked := first.n.Load() + second.n.Load()
		for i, w := range all {
			queue := queueOf(t, srv, "job")
			require.NoError(t, hold.Unlock())
			hold = w.acquired(t, time.Millisecond)
			require.Equal(t, hold.Owner().String(), queue[0])
			message, _ := conn.ReceiveWithTimeout(time.Second).(redis.Message)
			require.Equal(t, codec.OwnerChannel("job", queue[0]), message.Channel)
			require.Equal(t, codec.MessageUnlock, string(message.Data))
			synctest.Wait()
			require.Equal(t, asked+int64(2*i+1), first.n.Load()+second.n.Load(), "an acquire and the release before it")
		}
		require.NoError(t, hold.Unlock())
		require.IsNotType(t, redis.Message{}, conn.ReceiveWithTimeout(time.Second), "the queue is empty")
	})
}

// The message arrives before, while or after the waiter leaves.
func TestWokenWaiterThatLeavesForwardsTheWakeUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	holder, one, other := connect(t, srv.URL()), connect(t, srv.URL(), noPoll()), connect(t, srv.URL(), noPoll())
	for round := range testlevel.Rounds(40, 200) {
		name := redistest.Key(t)
		stays := other
		if round%2 == 0 {
			stays = one
		}
		hold := take(t, rfairlock.New(holder, name))
		ctx, cancel := context.WithCancel(t.Context())
		leaver := queueUp(ctx, t, srv, rfairlock.New(one, name), 1)[0]
		stayer := queueUp(t.Context(), t, srv, rfairlock.New(stays, name), 1)[0]
		go cancel()
		require.NoError(t, hold.Unlock())
		leaver.ended(t, promptly)
		if leaver.err == nil {
			require.NoError(t, leaver.hold.Unlock())
		}
		require.NoError(t, stayer.acquired(t, promptly).Unlock())
	}
}

// The waiter leaves before the message arrives.
func TestWakeUpOfAWaiterThatHasLeftGoesToTheNext(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	p, client := through(t, srv, noPoll())
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := queueUp(ctx, t, srv, l, 1)[0]
	stayer := queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), l.Name()), 1)[0]
	p.Blackhole(redistest.ToClient)
	freeByHand(t, srv, l.Name())
	stayer.stillWaits(t)
	cancel()
	require.ErrorIs(t, leaver.failed(t, promptly), context.Canceled)
	require.NoError(t, stayer.acquired(t, promptly).Unlock())
	p.Heal()
}

func TestU16ReleaseWithoutSubscriberCostsAGapAndNoPoll(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	holder := connect(t, srv.URL())
	one, other := connect(t, srv.URL(), noPoll()), connect(t, srv.URL(), noPoll())
	for range 20 {
		name := redistest.Key(t)
		hold := take(t, rfairlock.New(holder, name))
		all := queueUp(t.Context(), t, srv, rfairlock.New(one, name), 3)
		all = append(all, queueUp(t.Context(), t, srv, rfairlock.New(other, name), 3)...)
		require.Positive(t, srv.KillClients(t, "pubsub"))
		require.NoError(t, hold.Unlock()) // in the gap, or just before or after it
		for _, w := range all {
			require.NoError(t, w.acquired(t, promptly).Unlock())
		}
	}
}

func TestForceUnlockWakesTheFirstInTheQueue(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	l := rfairlock.New(connect(t, srv.URL(), noPoll()), redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	all := queueUp(t.Context(), t, srv, l, 3)
	for i, w := range all {
		forced, err := l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		w.acquired(t, promptly)
		for _, later := range all[i+1:] {
			later.stillWaits(t)
		}
	}
	forced, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	forced, err = l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.False(t, forced)
	requireNoTrace(t, srv, l.Name())
}

func TestU13DeadHeadIsSkippedWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		const lease = 2 * time.Second
		holdByHand(t, srv, "job", lease)
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(2*lease))
		all, _ := waitTogether(t, rfairlock.New(client, "job"), 2)
		hold := all[0].acquired(t, 2*lease+promptly)
		require.GreaterOrEqual(t, all[0].took, 2*lease, "it might have lived")
		require.NoError(t, hold.Unlock())
		require.NoError(t, all[1].acquired(t, time.Second).Unlock())
		requireNoTrace(t, srv, "job")
	})
}
