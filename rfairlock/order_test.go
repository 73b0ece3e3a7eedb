package rfairlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// takeTurns acquires the lock in goroutines, each rounds times.
func takeTurns(ctx context.Context, l *rlock.Lock, goroutines, rounds int) error {
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := 0; n < rounds && errs[i] == nil; n++ {
				errs[i] = l.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Redisson's default pool of subscriptions is too small for them.
func TestManyWaitersAcquireInTheOrderOfTheQueue(t *testing.T) {
	for _, clients := range []int{1, 5} {
		n := testlevel.Rounds(200, 1000)
		synctest.Test(t, func(t *testing.T) {
			srv, _, _ := inBubble(t)
			var locks []*rlock.Lock
			for range clients {
				client, _ := fakeClient(t, srv, noPoll())
				locks = append(locks, rfairlock.New(client, "job"))
			}
			holdByHand(t, srv, "job", time.Hour)
			var got []string // guarded by the lock
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					hold, err := locks[i%clients].Lock(t.Context())
					if !assert.NoError(t, err) {
						return
					}
					got = append(got, hold.Owner().String())
					assert.NoError(t, hold.Unlock())
				})
			}
			synctest.Wait()
			queue := queueOf(t, srv, "job")
			require.Len(t, queue, n)
			freed := time.Now()
			freeByHand(t, srv, "job")
			wg.Wait()
			require.Zero(t, time.Since(freed))
			require.Equal(t, queue, got)
			requireNoTrace(t, srv, "job")
		})
	}
}

func TestNoCallerOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	holder, eager := rfairlock.New(connect(t, srv.URL()), name), rfairlock.New(connect(t, srv.URL()), name)
	hold := take(t, holder)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := make(chan struct{})
	tried := make(chan error, 1)
	go func() {
		defer close(stop)
		for ctx.Err() == nil {
			if hold, err := eager.TryLock(ctx); err == nil {
				tried <- hold.Unlock()
				return
			}
		}
	}()
	all := queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), name), 10)
	last := all[len(all)-1]
	require.NoError(t, hold.Unlock())
	for _, w := range all {
		h := w.acquired(t, promptly)
		require.Empty(t, tried, "TryLock overtook the queue")
		if w == last {
			cancel()
		}
		require.NoError(t, h.Unlock())
	}
	<-stop
}
