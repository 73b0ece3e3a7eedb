package rlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestAPollCapOfOneLockCountsForEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "plain", time.Hour)
		holdByHand(t, srv, "fair", time.Hour)
		srv.Do(t, "HSET", "rw", "mode", "write", foreignOwner+":write", 1)
		srv.Do(t, "PEXPIRE", "rw", time.Hour.Milliseconds())
		often := rlock.WithPollCap(100 * time.Millisecond)
		plain := await(t.Context(), rlock.New(client, "plain"), often)
		fair := await(t.Context(), rfairlock.New(client, "fair"), often)
		reader := await(t.Context(), rreadwritelock.New(client, "rw").Read(), often)
		time.Sleep(25 * time.Second)
		srv.Do(t, "DEL", "plain", "fair", "rw")
		began := time.Now()
		for _, w := range []*waiter{plain, fair, reader} {
			require.NoError(t, w.acquired(t, time.Minute).Unlock())
		}
		require.LessOrEqual(t, time.Since(began), 400*time.Millisecond) // a reader that follows another asks less often
	})
}

func TestWithoutWakeUpsTheCallerListensToNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	here, there := connect(t, srv.URL()), connect(t, srv.URL())
	l := rlock.New(here, redistest.Key(t))
	held := take(t, rlock.New(there, l.Name()))
	polls := rlock.WithoutWakeUps(20 * time.Millisecond)
	w := await(t.Context(), l, polls)
	before := srv.CommandStats(t)["evalsha"]
	until(t, soon, "it does not ask", func() bool { return srv.CommandStats(t)["evalsha"] >= before+5 })
	require.Empty(t, srv.Channels(t))
	require.NoError(t, held.Unlock())
	hold := w.acquired(t, soon)

	// Its release wakes one that listens, such as Redisson's.
	far := await(t.Context(), rlock.New(connect(t, srv.URL(), noPoll()), l.Name()))
	listening(t, srv, codec.LockChannel(l.Name()))
	require.NoError(t, hold.Unlock())
	require.NoError(t, far.acquired(t, soon).Unlock())
	require.Zero(t, srv.CommandStats(t)["pubsub|numsub"], "what is not there is not asked for")
}

// As on a server without pub/sub.
func TestWithoutWakeUpsNoSubscriptionIsNeeded(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all",
		"-subscribe", "-ssubscribe", "-psubscribe", "-pubsub")
	client := connect(t, srv.URL(), redlatch.WithCredentials(func(context.Context) (string, string, error) { return "deaf", "secret", nil }))
	all := []string{redistest.Key(t) + "a", redistest.Key(t) + "b"}
	polls := rlock.WithoutWakeUps(5 * time.Millisecond)
	var wg sync.WaitGroup
	inside := 0
	for range 4 {
		wg.Go(func() {
			for range 20 {
				assert.NoError(t, rlock.New(client, all[0]).Do(t.Context(), func(context.Context) error { inside++; return nil }, polls))
				assert.NoError(t, rmultilock.New(client, all...).Do(t.Context(), func(context.Context) error { inside++; return nil }, polls))
			}
		})
	}
	wg.Wait()
	require.Equal(t, 160, inside)
}

func TestPollsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	for what, opts := range map[string][]rlock.Option{
		"no unit": {rlock.WithPollCap(10)}, "none": {rlock.WithPollCap(0)}, "below 0": {rlock.WithoutWakeUps(-time.Second)},
		"both": {rlock.WithPollCap(time.Second), rlock.WithoutWakeUps(time.Second)},
	} {
		_, err := l.Lock(t.Context(), opts...)
		require.ErrorIs(t, err, redlatch.ErrInvalid, what)
	}
	polls := rlock.WithoutWakeUps(time.Second)
	for _, fair := range []*rlock.Lock{
		rfairlock.New(client, l.Name()), rreadwritelock.New(client, l.Name()).Read(), rreadwritelock.New(client, l.Name()).Write(),
	} {
		_, err := fair.Lock(t.Context(), polls)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
	fenced, err := rfencedlock.New(client, l.Name()).Lock(t.Context(), polls)
	require.NoError(t, err)
	require.NoError(t, fenced.Unlock())
	srv.Do(t, "DEL", codec.TokenKey(l.Name()))
}
