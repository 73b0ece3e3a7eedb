package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// A queued caller that cannot subscribe would block the others: it asks without
// being woken.
func TestU24QueuedCallerThatCannotSubscribePolls(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv.Addr())
	client := connect(t, p.URL(), redlatch.WithPollCap(300*time.Millisecond))
	l := rfairlock.New(client, redistest.Key(t))
	require.NoError(t, take(t, l).Unlock())
	other := rfairlock.New(connect(t, srv.URL(), noPoll()), l.Name())
	hold := take(t, other)
	p.Refuse(true) // the connection for commands stays
	first := await(t.Context(), l)
	awaitQueue(t, srv, l.Name(), 1)
	second := await(t.Context(), other)
	awaitQueue(t, srv, l.Name(), 2)
	require.NoError(t, hold.Unlock())
	require.NoError(t, first.acquired(t, promptly).Unlock())
	require.NoError(t, second.acquired(t, promptly).Unlock())
	requireNoTrace(t, srv, l.Name())
	p.Refuse(false)
}

// queueMany makes n callers of one client queue.
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

func TestCloseDequeuesManyWaiters(t *testing.T) {
	testlevel.All(t, "5,000 waiters")
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithCommandTimeout(soon)) // the machine may be busy
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), time.Hour)
	all := queueMany(t.Context(), t, srv, l, 5000)
	until(t, time.Minute, "all listen", func() bool { return len(srv.Channels(t)) == len(all) })
	before := srv.CommandStats(t)["lrange"]
	began := time.Now()
	require.NoError(t, client.Close())
	t.Logf("Close took %v", time.Since(began))
	walks := srv.CommandStats(t)["lrange"] - before
	require.Less(t, int(walks), parts*len(all)/10, "many left by one script")
	require.Empty(t, queueOf(t, srv, l.Name()))
	for _, w := range all {
		require.ErrorIs(t, w.failed(t, promptly), redlatch.ErrClosed)
	}
}

func TestManyLeavingWaitersCostTheClientNoOtherHold(t *testing.T) {
	testlevel.All(t, "5,000 waiters")
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithCommandTimeout(soon)) // the machine may be busy
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	all := queueMany(ctx, t, srv, l, 4000)
	kept := take(t, rlock.New(client, redistest.Key(t)), rlock.WithWatchdog(6*time.Second))
	cancel()
	for _, w := range all {
		require.ErrorIs(t, w.failed(t, soon), context.Canceled)
	}
	until(t, time.Minute, "none is queued", func() bool { return len(queueOf(t, srv, l.Name())) == 0 })
	require.NoError(t, kept.Unlock())
}

// parts is in how many parts one script reads a queue of 5,000 waiters at most.
const parts = 5

// What failed while Redis was away is tried again for many at once: a call may walk
// the whole queue.
func TestManyWaitersThatLeaveWhileRedisIsAwayAreDequeuedSoonAfterwards(t *testing.T) { //nolint:tparallel // 5,000 waiters at a time are enough
	testlevel.All(t, "thousands of waiters, 22 s")
	t.Parallel()
	for name, goAway := range map[string]func(*redistest.Server, *redistest.Proxy) (back func()){
		"it stands still": func(srv *redistest.Server, _ *redistest.Proxy) func() {
			srv.Pause()
			return srv.Resume
		},
		"it cannot be reached": func(_ *redistest.Server, p *redistest.Proxy) func() {
			p.Refuse(true)
			p.Reset()
			return func() { p.Refuse(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			p, client := through(t, srv, redlatch.WithCommandTimeout(soon)) // the machine may be busy
			l := rfairlock.New(client, redistest.Key(t))
			holdByHand(t, srv, l.Name(), time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			all := queueMany(ctx, t, srv, l, 5000)
			before := srv.CommandStats(t)["lrange"]
			back := goAway(srv, p)
			cancel()
			for _, w := range all {
				require.Error(t, w.failed(t, soon))
			}
			<-time.After(time.Second) // for which it is away
			back()
			returned := time.Now()
			until(t, time.Minute, "none is queued", func() bool { return len(queueOf(t, srv, l.Name())) == 0 })
			walks := srv.CommandStats(t)["lrange"] - before
			t.Logf("gone %v after it was back, by %d scripts", time.Since(returned), walks)
			require.Less(t, int(walks), parts*len(all)/10, "many left by one script")
		})
	}
}

// TryLock enters no queue, so it has nothing to give up: the place in the
// queue belongs to another user of the owner.
func TestTryLockForAGivenOwnerLeavesOtherQueueEntriesAlone(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p, client := through(t, srv)
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), time.Hour)
	owner := redlatch.NewOwner(uuid.New(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	queueUp(ctx, t, srv, rfairlock.New(connect(t, srv.URL()), l.Name()), 1, rlock.WithOwner(owner))
	checkTry := func() { // the server knows the script
		_, err := l.TryLock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	}
	checkTry()
	p.Blackhole(redistest.ToClient)
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := l.TryLock(short, rlock.WithOwner(owner))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	p.Heal()
	checkTry() // behind whatever follows from that
	require.Equal(t, []string{owner.String()}, queueOf(t, srv, l.Name()))
	cancel()
}

// The callers of one owner have one place, which is left with the wait that it was
// taken with.
func TestSharedQueueEntryIsLeftWithItsWait(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL())
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), time.Hour)
	owner := rlock.WithOwner(redlatch.NewOwner(uuid.New(), 1))
	first, cancelFirst := context.WithCancel(t.Context())
	queueUp(first, t, srv, l, 1, owner, rlock.WithWait(40*time.Second))
	second, cancelSecond := context.WithCancel(t.Context())
	w := await(second, l, owner)
	rest, cancelRest := context.WithCancel(t.Context())
	queued := await(rest, l)
	last := awaitAsleep(t, srv, l.Name(), 2)[1]
	before := deadlinesOf(t, srv, l.Name())[last]
	cancelSecond()
	require.ErrorIs(t, w.failed(t, promptly), context.Canceled)
	until(t, promptly, "the deadline has moved", func() bool { return deadlinesOf(t, srv, l.Name())[last] != before })
	require.Equal(t, before-40_000, deadlinesOf(t, srv, l.Name())[last])
	cancelRest()
	require.Error(t, queued.failed(t, promptly))
	cancelFirst()
}
