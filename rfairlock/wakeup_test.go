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
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// A release notifies one waiter, which makes one attempt.
func TestReleaseNotifiesOnlyHeadOfQueue(t *testing.T) {
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
			require.Equal(t, protocol.OwnerChannel("job", queue[0]), message.Channel)
			require.Equal(t, protocol.MessageUnlock, string(message.Data))
			synctest.Wait()
			require.Equal(t, asked+int64(2*i+1), first.n.Load()+second.n.Load(), "an acquire and the previous release")
		}
		require.NoError(t, hold.Unlock())
		require.IsNotType(t, redis.Message{}, conn.ReceiveWithTimeout(time.Second), "the queue is empty")
	})
}

func TestU13DeadHeadSkippedAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		const lease = 2 * time.Second
		holdByHand(t, srv, "job", lease)
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(2*lease))
		all, _ := waitTogether(t, rfairlock.New(client, "job"), 2)
		hold := all[0].acquired(t, 2*lease+promptly)
		require.GreaterOrEqual(t, all[0].took, 2*lease, "it might have been alive")
		require.NoError(t, hold.Unlock())
		require.NoError(t, all[1].acquired(t, time.Second).Unlock())
		requireNoTrace(t, srv, "job")
	})
}

func TestU14UnlockDuringSubscribeIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		listens := make(chan struct{})
		calls.subscribe = func(context.Context) error { <-listens; return nil }
		holdByHand(t, srv, "job", time.Hour)
		w, _ := waitTogether(t, rfairlock.New(client, "job"), 1)
		freeByHand(t, srv, "job")
		close(listens)
		require.NoError(t, w[0].acquired(t, time.Second).Unlock())
	})
}

// The message arrives before, while or after the waiter leaves.
func TestCanceledWaiterForwardsNotification(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, holder, _ := inBubble(t)
		one, _ := fakeClient(t, srv, noPoll())
		other, _ := fakeClient(t, srv, noPoll())
		for round := range testlevel.Rounds(20, 200) {
			stays := []*redlatch.Client{one, other}[round%2]
			hold := take(t, rfairlock.New(holder, "job"))
			ctx, cancel := context.WithCancel(t.Context())
			leaver := await(ctx, rfairlock.New(one, "job"))
			synctest.Wait()
			stayer, _ := waitTogether(t, rfairlock.New(stays, "job"), 1)
			go cancel()
			require.NoError(t, hold.Unlock())
			leaver.ended(t, time.Second)
			if leaver.err == nil {
				require.NoError(t, leaver.hold.Unlock())
			}
			require.NoError(t, stayer[0].acquired(t, time.Second).Unlock())
		}
	})
}

// The waiter leaves before the message arrives.
func TestNotificationOfDepartedWaiterGoesToNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		other, _ := fakeClient(t, srv, noPoll())
		holdByHand(t, srv, "job", time.Hour)
		_, leave := waitTogether(t, rfairlock.New(client, "job"), 1)
		stayer, _ := waitTogether(t, rfairlock.New(other, "job"), 1)
		srv.Do(t, "DEL", "job") // and the message is lost
		synctest.Wait()
		stayer[0].stillWaits(t)
		leave()
		require.NoError(t, stayer[0].acquired(t, time.Second).Unlock())
	})
}

func TestU16MissedReleaseDetectedOnReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, holder, _ := inBubble(t)
		one, _ := fakeClient(t, srv, noPoll())
		other, _ := fakeClient(t, srv, noPoll())
		for range testlevel.Rounds(8, 40) {
			hold := take(t, rfairlock.New(holder, "job"))
			all, _ := waitTogether(t, rfairlock.New(one, "job"), 3)
			rest, _ := waitTogether(t, rfairlock.New(other, "job"), 3)
			srv.DropSubscribers()
			require.NoError(t, hold.Unlock()) // in the gap, or just before or after it
			for _, w := range append(all, rest...) {
				require.NoError(t, w.acquired(t, 2*time.Second).Unlock())
			}
		}
	})
}

func TestForceUnlockNotifiesHeadOfQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		all, _ := waitTogether(t, l, 3)
		for i, w := range all {
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
			w.acquired(t, time.Second)
			for _, later := range all[i+1:] {
				later.stillWaits(t)
			}
		}
		for _, want := range []bool{true, false} {
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, forced)
		}
		requireNoTrace(t, srv, "job")
	})
}
