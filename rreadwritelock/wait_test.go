package rreadwritelock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// readers starts n goroutines that read without a pause, so that the lock is always held.
func readers(t *testing.T, l *rlock.Lock, n int, each time.Duration) (stop func(), turns *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	turns = new(atomic.Int64)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, func(context.Context) error {
					time.Sleep(each + time.Duration(i)*time.Millisecond)
					turns.Add(1)
					return nil
				})
				if ctx.Err() == nil {
					assert.NoError(t, err)
				}
			}
		})
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop, turns
}

func TestWriterAcquiresBetweenAlternatingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		stop, turns := readers(t, rw.Read(), 20, 10*time.Millisecond)
		require.Eventually(t, func() bool { return turns.Load() > 40 }, soon, time.Millisecond)
		for range 2 {
			began, before := time.Now(), turns.Load()
			w, err := rw.Write().Lock(within(t), rlock.WithWait(10*time.Second))
			require.NoError(t, err)
			meanwhile := turns.Load() - before
			t.Logf("after %v and %d turns of readers", time.Since(began), meanwhile)
			// 20 may hold it, 32 more are admitted, and some acquire before the writer's first attempt.
			require.Less(t, meanwhile, int64(200))
			unlock(t, w)
			at := turns.Load()
			require.Eventually(t, func() bool { return turns.Load() > at }, soon, time.Millisecond, "readers acquire again")
		}
		stop()
		free(t, s, rw)
	})
}

// Each reader enters before the previous one leaves.
func TestReadersCanStarveWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		rw := rreadwritelock.New(clientOf(t, s), "job", rreadwritelock.WithoutWriterPreference())
		hold := take(t, rw.Read())
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		writer := later(ctx, rw.Write())
		synctest.Wait()
		for range 50 { // more than a waiting writer admits
			next := take(t, rw.Read())
			unlock(t, hold)
			hold = next
			select {
			case w := <-writer:
				require.Fail(t, "the writer acquired the lock", "%v", w.Err)
			default:
			}
		}
		cancel()
		require.ErrorIs(t, (<-writer).Err, redlatch.ErrNotAcquired)
		unlock(t, hold)
		free(t, s, rw)
	})
}

// Readers of both clients hold the lock.
func TestHeldByReadersReportsNoHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		rw := rreadwritelock.New(clientOf(t, s), far.Name(), rreadwritelock.WithoutWriterPreference())
		r := take(t, far.Read())
		w := later(within(t), rw.Write())
		synctest.Wait()
		ours := take(t, rw.Read())
		_, err := rw.Write().TryLock(within(t))
		var refusal *redlatch.LockError
		require.ErrorAs(t, err, &refusal)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Zero(t, refusal.Holder)
		unlock(t, r, ours)
		unlock(t, must(t, w, soon))
		free(t, s, rw)
	})
}

func TestWritersAndReadersExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		locks := []*rreadwritelock.Lock{rw, same(t, s, rw)}
		ctx := within(t)
		var wg sync.WaitGroup
		var writing, reading, shared atomic.Int64
		sum := 0
		for i := range 24 {
			l := locks[i%2]
			wg.Go(func() {
				for n := range 3 {
					if (i+n)%3 == 0 {
						assert.NoError(t, l.Write().Do(ctx, func(context.Context) error {
							assert.EqualValues(t, 1, writing.Add(1))
							assert.Zero(t, reading.Load())
							sum++
							time.Sleep(time.Millisecond)
							writing.Add(-1)
							return nil
						}))
						continue
					}
					assert.NoError(t, l.Read().Do(ctx, func(context.Context) error {
						if reading.Add(1) > 1 {
							shared.Add(1)
						}
						assert.Zero(t, writing.Load())
						_ = sum
						time.Sleep(time.Millisecond)
						reading.Add(-1)
						return nil
					}))
				}
			})
		}
		wg.Wait()
		require.Equal(t, 24, sum)
		require.Positive(t, shared.Load())
		free(t, s, rw)
	})
}

func TestQueuedWritersAdmitReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		ctx, cancel := context.WithCancel(within(t))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = rw.Write().Do(ctx, func(context.Context) error { time.Sleep(2 * time.Millisecond); return nil })
				}
			})
		}
		for range 20 {
			began := time.Now()
			unlock(t, take(t, rw.Read()))
			require.Less(t, time.Since(began), 3*time.Second)
		}
		cancel()
		wg.Wait()
		free(t, s, rw)
	})
}

// Writers in other processes are notified later than writers in the process that releases the lock.
func TestWritersOfTwoProcessesShareTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one := inMemory(t)
		locks := []*rreadwritelock.Lock{one, same(t, s, one)}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		var turns [2]atomic.Int64
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					if h, err := locks[i%2].Write().Lock(ctx); err == nil {
						turns[i%2].Add(1)
						time.Sleep(time.Millisecond)
						assert.NoError(t, h.Unlock())
					}
				}
			})
		}
		all.Wait()
		a, b := turns[0].Load(), turns[1].Load()
		t.Log(a, b)
		require.GreaterOrEqual(t, 100*min(a, b)/(a+b), int64(30), "percent of the turns")
	})
}
