package rfairlock_test

import (
	"context"
	"testing"
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

// The lock is freed after the first attempt and before the subscription is there.
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

// messages collects what is published for a lock's waiters.
type messages struct {
	srv  *redistest.Server
	conn redis.PubSubConn
	name string
}

func listen(t *testing.T, srv *redistest.Server, name string) *messages {
	t.Helper()
	m := &messages{srv: srv, conn: redis.PubSubConn{Conn: srv.Dial(t)}, name: name}
	require.NoError(t, m.conn.PSubscribe(codec.LockChannel(name)+"*"))
	_, isAck := m.conn.Receive().(redis.Subscription)
	require.True(t, isAck)
	return m
}

// heard returns the channels of the messages since it was last called.
func (m *messages) heard(t *testing.T) []string {
	t.Helper()
	// What stands before a message of our own has all come.
	m.srv.Do(t, "PUBLISH", codec.LockChannel(m.name), "mark")
	var all []string
	for {
		got, ok := m.conn.ReceiveWithTimeout(soon).(redis.Message)
		require.True(t, ok)
		if string(got.Data) == "mark" {
			return all
		}
		require.Equal(t, codec.MessageUnlock, string(got.Data))
		all = append(all, got.Channel)
	}
}

// However many wait, a release tells one, and one asks.
func TestReleaseWakesOnlyTheFirstInTheQueue(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	name := redistest.Key(t)
	lease := rlock.WithLease(forever)
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", srv.Addr()) }
	var clients [3]*redlatch.Client
	var calls [3]*counting
	for i := range clients {
		clients[i], calls[i] = countingClient(t, dial, noPoll())
	}
	asks := func() int64 { return calls[0].n.Load() + calls[1].n.Load() + calls[2].n.Load() }
	loadScripts(t, clients[0])
	hold := take(t, rfairlock.New(clients[0], name), lease)
	heard := listen(t, srv, name)
	a, b := rfairlock.New(clients[1], name), rfairlock.New(clients[2], name)
	var all []*waiter
	for range 5 { // alternately of one client and the other
		all = append(all, queueUp(t.Context(), t, srv, a, 1, lease)...)
		all = append(all, queueUp(t.Context(), t, srv, b, 1, lease)...)
	}
	asked := int64(-1)
	until(t, soon, "no waiter asks any more", func() bool {
		before := asked
		asked = asks()
		return asked == before
	})
	for i, w := range all {
		require.Empty(t, heard.heard(t))
		queue := queueOf(t, srv, name)
		require.NoError(t, hold.Unlock())
		hold = w.acquired(t, promptly)
		require.Equal(t, hold.Owner().String(), queue[0])
		require.Equal(t, []string{codec.OwnerChannel(name, queue[0])}, heard.heard(t))
		require.Equal(t, asked+2*int64(i+1), asks(), "a release and an acquire")
	}
	require.NoError(t, hold.Unlock())
	require.Empty(t, heard.heard(t), "no waiter is left to be notified")
}

// Its message may come before it leaves, while it leaves, or after that.
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

// The message is on its way to a waiter that leaves without having heard it.
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

// A dead waiter of another process is first in the queue. It is passed over as
// soon as its deadline has come.
func TestU13DeadHeadIsSkippedWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	const lease = 2 * time.Second
	l := rfairlock.New(connect(t, srv.URL(), noPoll()), redistest.Key(t))
	holdByHand(t, srv, l.Name(), lease)
	queueByHand(t, srv, l.Name(), foreignHead, time.Now().Add(2*lease))
	all := queueUp(t.Context(), t, srv, l, 2)
	hold := all[0].acquired(t, 2*lease+promptly)
	require.GreaterOrEqual(t, all[0].took, lease, "it might have lived")
	require.NoError(t, hold.Unlock())
	require.NoError(t, all[1].acquired(t, promptly).Unlock())
	requireNoTrace(t, srv, l.Name())
}
