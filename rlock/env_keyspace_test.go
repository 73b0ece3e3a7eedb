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
		_, err = l.IsHeldBy(t.Context(), hold.Owner())
		requireOnly(t, err, "is-held-by", name, redlatch.ErrWrongType)
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
