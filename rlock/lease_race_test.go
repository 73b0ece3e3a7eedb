package rlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

func TestU6RacesOfLockCancelAndUnlockLeaveNoRenewalBehind(t *testing.T) {
	t.Parallel()
	const workers = 20
	races := testlevel.Rounds(30, 100)
	const watchdog = 6 * time.Second
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithWatchdogTimeout(watchdog))
	var acquired atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		name := redistest.Key(t)
		wg.Go(func() {
			within := 10 * time.Millisecond
			for range races {
				n := race(t, rlock.New(client, name), within)
				acquired.Add(n)
				switch n { // a busy machine needs more time for as many races
				case 0:
					within = min(2*within, time.Second)
				case 2:
					within = max(within/2, time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	watched := engine.EngineOf(client).Watchdog.Len()
	t.Logf("acquired %d of %d", acquired.Load(), 2*workers*races)
	require.Greater(t, acquired.Load(), int64(workers*races/10))
	require.Less(t, acquired.Load(), int64(2*workers*races), "none was cancelled")
	require.Zero(t, watched)
	requireNoTrace(t, srv)

	before, _ := commands(t, srv)
	<-time.After(watchdog/3 + time.Second) // nothing can be waited for: a renewal would have come
	after, _ := commands(t, srv)
	require.Equal(t, before, after, "renewals of a lock without a holder")
	require.EqualValues(t, 0, redisInt(t, srv, "DBSIZE"))
}

// race cancels, within the time given, and unlocks while the lock is being taken or released, and
// returns how often it was taken.
func race(t *testing.T, l *rlock.Lock, within time.Duration) int64 {
	t.Helper()
	var acquired atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			hold, err := l.Lock(ctx)
			if err != nil {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			acquired.Add(1)
			spin(rand.N(100 * time.Microsecond))
			wg.Go(func() { assert.NoError(t, hold.Unlock()) })
			assert.NoError(t, hold.Unlock())
		})
	}
	<-time.After(rand.N(within)) // not a spin: the machine has other things to do
	cancel()
	wg.Wait()
	return acquired.Load()
}
