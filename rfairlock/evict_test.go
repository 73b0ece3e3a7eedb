package rfairlock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// patient disables evictions by the client's heartbeats.
func patient() redlatch.Option { return redlatch.WithDeadWaiterGrace(0) }

// evicting runs a test in a bubble with a lock whose waiters only Evict removes.
func evicting(t *testing.T, test func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		test(t, srv, rfairlock.New(hostOf(t, srv, 0, noPoll(), patient()), "job"))
	})
}

func TestEvictRemovesDeadHeadAndNotifiesNext(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		deadline := time.Now().Add(4 * time.Minute)
		queueByHand(t, srv, "job", foreignHead, deadline)
		w, _ := waitTogether(t, l, 1)
		next := queueOf(t, srv, "job")[1]
		done, err := admin.Evict(t.Context(), l, foreignHead)
		require.NoError(t, err)
		w[0].acquired(t, time.Second)
		head, err := codec.ParseOwner(foreignHead)
		require.NoError(t, err)
		require.WithinDuration(t, deadline, done.Deadline, 0)
		done.Deadline = time.Time{}
		require.Equal(t, &admin.Eviction{Waiter: admin.Waiter{Owner: head, Text: foreignHead, Position: 1, Counted: true}, Next: next, Woken: true}, done)
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

func TestEvictWhileHeldNotifiesNobody(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		holdByHand(t, srv, "job", time.Hour)
		now := time.Now()
		queueByHand(t, srv, "job", "no owner", now.Add(65*time.Minute))
		queueByHand(t, srv, "job", foreignTail, now.Add(70*time.Minute))
		done, err := admin.Evict(t.Context(), l, "no owner")
		require.NoError(t, err)
		require.Zero(t, done.Owner)
		require.Equal(t, "no owner", done.Text)
		require.Equal(t, foreignTail, done.Next)
		require.False(t, done.Woken)
		require.Equal(t, []string{foreignTail}, queueOf(t, srv, "job"))
		// They move by the time from the end of the lease to the dead waiter's deadline, less 15 s.
		require.Equal(t, now.Add(65*time.Minute+15*time.Second).UnixMilli(), deadlinesOf(t, srv, "job")[foreignTail])

		done, err = admin.Evict(t.Context(), l, foreignTail)
		require.NoError(t, err)
		require.Empty(t, done.Next)
		require.Empty(t, deadlinesOf(t, srv, "job"))
	})
}

func TestEvictRemovesQueuedHolder(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		holdByHand(t, srv, "job", time.Hour)
		queueByHand(t, srv, "job", foreignOwner, time.Now().Add(2*time.Hour))
		_, err := admin.Evict(t.Context(), l, foreignOwner)
		require.NoError(t, err, "it did not acquire the lock before")
	})
}

// Later deadlines move by the dead waiter's own wait, not by the wait of this client. The wait of a
// waiter behind an overdue one is unknown.
func TestEvictAdjustsLaterDeadlines(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		at := time.Now().Add(time.Minute)
		for owner, after := range map[string]time.Duration{"a": 0, "short": 2 * time.Second, "b": time.Minute, "long": time.Hour, "c": 2 * time.Hour} {
			srv.Do(t, "ZADD", codec.TimeoutKey("job"), at.Add(after).UnixMilli(), owner)
		}
		srv.Do(t, "RPUSH", codec.QueueKey("job"), "a", "short", "b", "long", "none", "c")
		for i, owner := range []string{"short", "long", "none"} {
			done, err := admin.Evict(t.Context(), l, owner)
			require.NoError(t, err)
			require.Equal(t, []int{2, 3, 3}[i], done.Position)
			require.Equal(t, "a", done.Next)
			require.True(t, done.Woken)
		}
		require.Equal(t, []string{"a", "b", "c"}, queueOf(t, srv, "job"))
		require.Equal(t, map[string]int64{
			"a": at.UnixMilli(), "b": at.Add(58 * time.Second).UnixMilli(),
			"c": at.Add(2*time.Hour - 2*time.Second - 300*time.Second).UnixMilli(),
		}, deadlinesOf(t, srv, "job"))
	})
}

func TestEvictBehindOverdueWaiterKeepsLaterDeadlines(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		now := time.Now()
		queueByHand(t, srv, "job", "overdue", now.Add(-100*time.Second))
		queueByHand(t, srv, "job", "dead", now.Add(30*time.Second))
		queueByHand(t, srv, "job", "lives", now.Add(60*time.Second))
		_, err := admin.Evict(t.Context(), l, "dead")
		require.NoError(t, err)
		require.Equal(t, now.Add(30*time.Second).UnixMilli(), deadlinesOf(t, srv, "job")["lives"])
	})
}

func TestEvictKeepsSubscribedWaiter(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		holdByHand(t, srv, "job", time.Hour)
		_, end := waitTogether(t, l, 1)
		owner := queueOf(t, srv, "job")[0]
		_, err := admin.Evict(t.Context(), l, owner)
		require.ErrorIs(t, err, admin.ErrWaiterAlive)
		var reported *redlatch.LockError
		require.ErrorAs(t, err, &reported)
		require.Equal(t, "evict", reported.Op)
		require.Equal(t, owner, reported.Owner.String())
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))

		done, err := admin.ForceEvict(t.Context(), l, owner)
		require.NoError(t, err)
		require.True(t, done.Subscribed)
		end()
	})
}

func TestEvictKeepsWaiterOfUnknownLiveness(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "+zrem", "-pubsub")
	l := rfairlock.New(connect(t, url), aclNames(t)[0])
	queueByHand(t, s, l.Name(), foreignHead, time.Now().Add(time.Hour))
	_, err := admin.Evict(t.Context(), l, foreignHead)
	require.ErrorIs(t, err, admin.ErrNotCounted)
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, []string{foreignHead}, queueOf(t, s, l.Name()))

	done, err := admin.ForceEvict(t.Context(), l, foreignHead)
	require.NoError(t, err)
	require.False(t, done.Counted)
	require.Empty(t, queueOf(t, s, l.Name()))
}

func TestU42DocumentedUserCanEvict(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "+pubsub|numsub", "+role")
	client := connect(t, url)
	for _, name := range aclNames(t) {
		l := rfairlock.New(client, name)
		for i, owner := range []string{foreignHead, foreignOwner, foreignTail} {
			queueByHand(t, s, name, owner, time.Now().Add(time.Duration(i+1)*time.Hour))
		}
		for _, owner := range []string{foreignOwner, foreignHead, foreignTail} {
			done, err := admin.Evict(t.Context(), l, owner)
			require.NoError(t, err)
			require.True(t, done.Counted && !done.Subscribed)
		}
		requireNoTrace(t, s, name)
	}
}

func TestEvictExplainsWhyNothingWasRemoved(t *testing.T) {
	evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
		t.Helper()
		evict := func(l *rlock.Lock, owner string) error {
			_, err := admin.Evict(t.Context(), l, owner)
			return err
		}
		hold := take(t, l)
		require.ErrorIs(t, evict(l, foreignHead), admin.ErrNotQueued)
		require.ErrorIs(t, evict(l, hold.Owner().String()), admin.ErrNotQueued, "it holds the lock")
		require.NoError(t, hold.Unlock())
		plain := rlock.New(hostOf(t, srv, 0), "job")
		require.ErrorIs(t, evict(plain, foreignHead), redlatch.ErrInvalid)
		srv.Do(t, "SET", codec.QueueKey("job"), "no queue")
		require.ErrorIs(t, evict(l, foreignHead), redlatch.ErrWrongType)
		srv.Do(t, "DEL", codec.QueueKey("job"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := admin.Evict(ended, l, foreignHead)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// The queue changes after Evict has read it.
func TestEvictRereadsChangedQueue(t *testing.T) {
	for name, c := range map[string]struct {
		owner   string
		changes func(t *testing.T, srv *redistest.MiniServer)
		want    error
		left    int
	}{
		"the head's deadline": {foreignHead, func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			srv.Do(t, "ZINCRBY", codec.TimeoutKey("job"), 1000, foreignHead)
		}, nil, 1},
		"the waiter acquires the lock": {foreignOwner, func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			srv.Do(t, "DEL", codec.QueueKey("job"), codec.TimeoutKey("job"))
			holdByHand(t, srv, "job", time.Hour)
		}, admin.ErrNotQueued, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
				queueByHand(t, srv, "job", foreignOwner, time.Now().Add(2*time.Hour))
				changed := false
				h := newHost(t, srv, countTo(srv))
				h.counts = func() {
					if !changed {
						changed = true
						c.changes(t, srv)
					}
				}
				_, err := admin.Evict(t.Context(), rfairlock.New(over(t, h), "job"), c.owner)
				require.ErrorIs(t, err, c.want)
				require.Len(t, queueOf(t, srv, "job"), c.left)
				require.Len(t, deadlinesOf(t, srv, "job"), c.left)
			})
		})
	}
}

// Redisson may subscribe on a replica.
func TestEvictKeepsWaiterSubscribedOnReplica(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	l := rfairlock.New(connect(t, s.URL()), redistest.Key(t))
	queueByHand(t, s, l.Name(), foreignHead, time.Now().Add(time.Hour))
	c := replica.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", protocol.OwnerChannel(l.Name(), foreignHead)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, soon)
	require.NoError(t, err)
	_, err = admin.Evict(t.Context(), l, foreignHead)
	require.ErrorIs(t, err, admin.ErrWaiterAlive)
	in, err := admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	require.True(t, in.Queue[0].Counted && !in.Queue[0].Subscribed, "Inspect counts on the master only")
}

// Polls, heartbeats and subscriptions may be due at the moment of the eviction.
func TestNextWaiterAcquiresWithinASecondOfEvict(t *testing.T) {
	for trial := range testlevel.Rounds(3, 20) {
		evicting(t, func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock) {
			t.Helper()
			draw := rand.New(rand.NewPCG(1, uint64(trial)))
			others := rfairlock.New(hostOf(t, srv, 0, patient()), "job")
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
			var all []*waiter
			for range 1 + draw.IntN(4) {
				if draw.IntN(2) == 0 {
					l, others = others, l
				}
				all = append(all, await(t.Context(), l))
				synctest.Wait()
				time.Sleep(time.Duration(draw.Int64N(int64(2 * time.Second))))
			}
			time.Sleep(time.Duration(draw.Int64N(int64(30 * time.Second))))
			done, err := admin.Evict(t.Context(), others, foreignHead)
			require.NoError(t, err)
			require.True(t, done.Woken)
			for _, w := range all {
				require.NoError(t, w.acquired(t, time.Millisecond).Unlock(), "trial %d", trial)
			}
		})
	}
}
