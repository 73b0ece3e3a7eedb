package rlock_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestU43HolderOfADeletedKeyLearnsOfItWithinARenewalPeriod(t *testing.T) {
	t.Parallel()
	s, client := onShared(t, redlatch.WithWatchdogTimeout(shortLease))
	neighbour := take(t, rlock.New(client, redistest.Key(t)))
	vanished := map[string]*rlock.Hold{}
	for name, vanish := range map[string]func(t *testing.T, s redistest.Target, key string){
		"deleted": func(t *testing.T, s redistest.Target, key string) { t.Helper(); s.Do(t, "DEL", key) },
		"renamed": func(t *testing.T, s redistest.Target, key string) { t.Helper(); s.Do(t, "RENAME", key, key+"-away") },
		"overwritten": func(t *testing.T, s redistest.Target, key string) {
			t.Helper()
			s.Do(t, "SET", key, "a cache's")
		},
		"cleared of its owner": func(t *testing.T, s redistest.Target, key string) {
			t.Helper()
			s.Do(t, "HSET", key, foreignOwner, "1")
			for owner := range owners(t, s, key) {
				if owner != foreignOwner {
					s.Do(t, "HDEL", key, owner)
				}
			}
		},
	} {
		l := rlock.New(client, redistest.Key(t))
		vanished[name] = take(t, l)
		vanish(t, s, l.Name())
	}
	for name, hold := range vanished {
		awaitClosed(t, hold.Context(t.Context()).Done(), shortLease/3+slack, "the loss: "+name)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	}
	// One that shares the renewal script with them keeps its lock.
	awaitRenewal(t, s, neighbour.Name())
	require.NoError(t, neighbour.Err())
	require.NoError(t, neighbour.Unlock())
}

// A server that evicts takes locks first: they have a time to live.
func TestU43HolderOfAnEvictedKeyLearnsOfItWithinARenewalPeriod(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "volatile-ttl"))
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(shortLease))
	hold := take(t, rlock.New(client, redistest.Key(t)))
	ctx := hold.Context(t.Context())
	s.Do(t, "CONFIG", "SET", "maxmemory", "1") // everything that may go goes
	c := s.Dial(t)
	until(t, soon, "the eviction", func() bool {
		_, _ = c.Do("SET", "more", "than fits") // refused or not, it makes the server evict
		n, err := redis.Int(c.Do("EXISTS", hold.Name()))
		return err == nil && n == 0
	})
	awaitClosed(t, ctx.Done(), shortLease/3+slack, "the loss")
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
}

func TestU43KeyOfAnotherTypeIsNamedByEveryCall(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		client := connect(t, s.URL())
		name := redistest.Key(t)
		l := rlock.New(client, name)
		hold := take(t, l)
		s.Do(t, "SET", name, "a cache's")

		requireOnly(t, hold.Unlock(), "unlock", name, redlatch.ErrLost, redlatch.ErrWrongType)
		_, err := l.Lock(t.Context())
		requireOnly(t, err, "lock", name, redlatch.ErrWrongType)
		_, err = l.TryLock(t.Context())
		requireOnly(t, err, "trylock", name, redlatch.ErrWrongType)
		_, err = l.HoldCount(t.Context(), hold.Owner())
		requireOnly(t, err, "hold-count", name, redlatch.ErrWrongType)

		value, err := redis.String(s.Do(t, "GET", name), nil)
		require.NoError(t, err)
		require.Equal(t, "a cache's", value)
		require.Equal(t, int64(-1), s.Do(t, "PTTL", name), "it was not given a lease")
	})
}

// A waiter whose lock turns into something else gets an error, too.
func TestU43WaiterGetsAnErrorWhenTheKeyIsNoLockAnyMore(t *testing.T) {
	t.Parallel()
	s, client := onShared(t, redlatch.WithPollCap(100*time.Millisecond))
	l := rlock.New(client, redistest.Key(t))
	holdByHand(t, s, l.Name(), forever)
	w := await(t.Context(), l)
	awaitWaiters(t, s, l.Name())
	s.Do(t, "SET", l.Name(), "a cache's")
	requireOnly(t, w.failed(t, soon), "lock", l.Name(), redlatch.ErrWrongType)
}
