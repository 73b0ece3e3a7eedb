package rfairlock_test

import (
	"context"
	"errors"
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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// patient disables evictions by the client's heartbeats.
func patient() redlatch.Option { return redlatch.WithDeadWaiterGrace(0) }

// evictor returns the lock on another client.
func evictor(t *testing.T, s redistest.Target, name string) *rlock.Lock {
	t.Helper()
	return rfairlock.New(connect(t, s.URL()), name)
}

func TestEvictTakesTheDeadHeadOfAFreeLockOutAndWakesTheNext(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		l := rfairlock.New(connect(t, s.URL(), noPoll(), patient()), redistest.Key(t))
		deadline := time.UnixMilli(time.Now().Add(4 * time.Minute).UnixMilli())
		queueByHand(t, s, l.Name(), foreignHead, deadline)
		w := await(t.Context(), l)
		next := awaitAsleep(t, s, l.Name(), 2)[1]
		done, err := admin.Evict(t.Context(), evictor(t, s, l.Name()), foreignHead)
		require.NoError(t, err)
		w.acquired(t, promptly)
		head, err := redlatch.ParseOwner(foreignHead)
		require.NoError(t, err)
		require.Equal(t, &admin.Eviction{
			Waiter: admin.Waiter{Owner: head, Text: foreignHead, Position: 1, Deadline: deadline, Counted: true},
			Next:   next, Woken: true,
		}, done)
		require.Empty(t, queueOf(t, s, l.Name()))
	})
}

func TestEvictWhileTheLockIsHeldWakesNoWaiter(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := evictor(t, s, redistest.Key(t))
	holdByHand(t, s, l.Name(), time.Hour)
	now := time.Now()
	queueByHand(t, s, l.Name(), "no owner", now.Add(65*time.Minute))
	queueByHand(t, s, l.Name(), foreignTail, now.Add(70*time.Minute))
	done, err := admin.Evict(t.Context(), l, "no owner")
	require.NoError(t, err)
	require.Zero(t, done.Owner)
	require.Equal(t, "no owner", done.Text)
	require.Equal(t, foreignTail, done.Next)
	require.False(t, done.Woken)
	require.Equal(t, []string{foreignTail}, queueOf(t, s, l.Name()))
	// By the time from the end of the lease to the dead waiter's deadline, less 15 s.
	require.InDelta(t, now.Add(65*time.Minute+15*time.Second).UnixMilli(), deadlinesOf(t, s, l.Name())[foreignTail], 10_000)

	done, err = admin.Evict(t.Context(), l, foreignTail)
	require.NoError(t, err)
	require.Empty(t, done.Next)
	require.Empty(t, deadlinesOf(t, s, l.Name()))
}

// Later deadlines move by the dead waiter's own wait, not by the wait of this client.
func TestEvictTakesOneThatIsNotTheFirstOutAsItsGivingUpWould(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		l := evictor(t, s, redistest.Key(t))
		at := time.UnixMilli(time.Now().Add(time.Minute).UnixMilli())
		for owner, after := range map[string]time.Duration{"a": 0, "short": 2 * time.Second, "b": time.Minute, "long": time.Hour, "c": 2 * time.Hour} {
			s.Do(t, "ZADD", codec.TimeoutKey(l.Name()), at.Add(after).UnixMilli(), owner)
		}
		s.Do(t, "RPUSH", codec.QueueKey(l.Name()), "a", "short", "b", "long", "none", "c")
		for i, owner := range []string{"short", "long", "none"} {
			done, err := admin.Evict(t.Context(), l, owner)
			require.NoError(t, err)
			require.Equal(t, []int{2, 3, 3}[i], done.Position)
			require.Equal(t, "a", done.Next)
			require.True(t, done.Woken)
		}
		require.Equal(t, []string{"a", "b", "c"}, queueOf(t, s, l.Name()))
		require.Equal(t, map[string]int64{
			"a": at.UnixMilli(), "b": at.Add(58 * time.Second).UnixMilli(),
			"c": at.Add(2*time.Hour - 2*time.Second - 300*time.Second).UnixMilli(),
		}, deadlinesOf(t, s, l.Name()))
	})
}

// The wait of a waiter behind an overdue one is unknown.
func TestEvictBehindOneThatIsOverdueLeavesTheLivingTheirDeadlines(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := evictor(t, s, redistest.Key(t))
	now := time.Now()
	queueByHand(t, s, l.Name(), "overdue", now.Add(-100*time.Second))
	queueByHand(t, s, l.Name(), "dead", now.Add(30*time.Second))
	queueByHand(t, s, l.Name(), "lives", now.Add(60*time.Second))
	_, err := admin.Evict(t.Context(), l, "dead")
	require.NoError(t, err)
	require.InDelta(t, now.Add(30*time.Second).UnixMilli(), deadlinesOf(t, s, l.Name())["lives"], 10_000)
}

func TestEvictLeavesAWaiterWhoseChannelHasASubscriber(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := rfairlock.New(connect(t, s.URL(), noPoll()), redistest.Key(t))
	holdByHand(t, s, l.Name(), time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	w := queueUp(ctx, t, s, l, 1)[0]
	owner := awaitAsleep(t, s, l.Name(), 1)[0]
	ours := evictor(t, s, l.Name())
	_, err := admin.Evict(t.Context(), ours, owner)
	require.ErrorIs(t, err, admin.ErrWaiterAlive)
	var reported *redlatch.LockError
	require.ErrorAs(t, err, &reported)
	require.Equal(t, "evict", reported.Op)
	require.Equal(t, owner, reported.Owner.String())
	require.Equal(t, []string{owner}, queueOf(t, s, l.Name()))

	done, err := admin.ForceEvict(t.Context(), ours, owner)
	require.NoError(t, err)
	require.True(t, done.Subscribed)
	cancel()
	require.ErrorIs(t, w.failed(t, soon), context.Canceled)
}

func TestEvictLeavesAWaiterWhoseLivenessIsUnknown(t *testing.T) {
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

func TestU42DocumentedUserMayEvictWhereItMayCount(t *testing.T) {
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

func TestEvictSaysWhyThereIsNothingToTakeOut(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client := connect(t, s.URL())
	l := rfairlock.New(client, redistest.Key(t))
	hold := take(t, l)
	evict := func(l *rlock.Lock, owner string) error {
		_, err := admin.Evict(t.Context(), l, owner)
		return err
	}
	require.ErrorIs(t, evict(l, foreignHead), admin.ErrNotQueued)
	require.ErrorIs(t, evict(l, hold.Owner().String()), admin.ErrNotQueued, "it holds the lock")
	require.NoError(t, hold.Unlock())
	require.ErrorIs(t, evict(rlock.New(client, l.Name()), foreignHead), redlatch.ErrInvalid)
	require.ErrorIs(t, evict(rfairlock.New(client, ""), foreignHead), redlatch.ErrInvalid)
	s.Do(t, "SET", codec.QueueKey(l.Name()), "no queue")
	require.ErrorIs(t, evict(l, foreignHead), redlatch.ErrWrongType)
	s.Do(t, "DEL", codec.QueueKey(l.Name()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := admin.Evict(ended, l, foreignHead)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorIs(t, err, context.Canceled)
}

// evictDuring calls Evict, and happens after Evict has read the queue.
func evictDuring(t *testing.T, s redistest.Target, name, owner string, happens func()) error {
	t.Helper()
	p, client := through(t, s)
	held := p.HoldMatching(redistest.ToServer, "\r\nPUBSUB\r\n")
	result := make(chan error, 1)
	go func() {
		_, err := admin.Evict(t.Context(), rfairlock.New(client, name), owner)
		result <- err
	}()
	awaitClosed(t, held.Seen(), "the count")
	happens()
	held.Release()
	select {
	case err := <-result:
		return err
	case <-time.After(soon):
		return errors.New("Evict has not returned")
	}
}

func TestEvictLooksAgainAtAHeadThatHasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	queueByHand(t, s, name, foreignHead, time.Now().Add(time.Hour))
	require.NoError(t, evictDuring(t, s, name, foreignHead, func() {
		s.Do(t, "ZINCRBY", codec.TimeoutKey(name), 1000, foreignHead)
	}))
	require.Empty(t, queueOf(t, s, name))
	require.Empty(t, deadlinesOf(t, s, name))
}

func TestEvictOfAWaiterThatGetsTheLockMeanwhileSaysThatItIsNotQueued(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	queueByHand(t, s, name, "a", time.Now().Add(time.Hour))
	queueByHand(t, s, name, foreignOwner, time.Now().Add(2*time.Hour))
	err := evictDuring(t, s, name, foreignOwner, func() {
		s.Do(t, "DEL", codec.QueueKey(name), codec.TimeoutKey(name))
		holdByHand(t, s, name, time.Hour)
	})
	require.ErrorIs(t, err, admin.ErrNotQueued)
	require.Contains(t, owners(t, s, name), foreignOwner)
}

func TestSubscribersAreReportedInTheOrderOfTheOwners(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		client := connect(t, s.URL(), noPoll())
		l := rfairlock.New(client, redistest.Key(t))
		holdByHand(t, s, l.Name(), time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w := queueUp(ctx, t, s, l, 1)[0]
		owner := awaitAsleep(t, s, l.Name(), 1)[0]
		counts, err := admin.Listeners(t.Context(), l, foreignHead, owner)
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1}, counts)
		none, err := admin.Listeners(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = admin.Listeners(t.Context(), rlock.New(client, l.Name()), owner)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		cancel()
		require.ErrorIs(t, w.failed(t, soon), context.Canceled)
		s.Do(t, "DEL", l.Name())
		requireNoTrace(t, s, l.Name())
	})
}

// Redisson may subscribe on a replica.
func TestEvictLeavesAWaiterThatListensOnAReplica(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	l := evictor(t, s, redistest.Key(t))
	queueByHand(t, s, l.Name(), foreignHead, time.Now().Add(time.Hour))
	c := replica.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.OwnerChannel(l.Name(), foreignHead)))
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
func TestTheNextWaiterHoldsWithinASecondOfAnyEvict(t *testing.T) {
	for trial := range testlevel.Rounds(3, 50) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(1, uint64(trial)))
			srv := redistest.Mini(t, embedded.WithInProcess())
			l := rfairlock.New(hostOf(t, srv, 0, patient()), "job")
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
