package rreadwritelock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
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

func TestAWriterGetsInBesideReadersThatTakeTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	stop, turns := readers(t, rw.Read(), 20, 10*time.Millisecond)
	require.Eventually(t, func() bool { return turns.Load() > 40 }, soon, time.Millisecond)
	for range 3 {
		began, before := time.Now(), turns.Load()
		w, err := rw.Write().Lock(within(t), rlock.WithWait(10*time.Second))
		require.NoError(t, err)
		meanwhile := turns.Load() - before
		t.Logf("after %v and %d turns of readers", time.Since(began), meanwhile)
		// 20 may be inside, 32 more are admitted, and some enter before the writer is refused.
		require.Less(t, meanwhile, int64(200))
		unlock(t, w)
		at := turns.Load()
		require.Eventually(t, func() bool { return turns.Load() > at }, soon, time.Millisecond, "readers come in again")
	}
	stop()
	free(t, s, rw)
}

// Each reader enters before the previous one leaves.
func TestReadersMayKeepAWriterOut(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := rreadwritelock.New(connect(t, s.URL()), redistest.Key(t), rreadwritelock.WithoutWriterPreference())
	hold := take(t, rw.Read())
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	writer := later(ctx, rw.Write())
	waiting(t, s, rw, 1)
	for range 50 { // more than a waiting writer admits
		next := take(t, rw.Read())
		unlock(t, hold)
		hold = next
		select {
		case w := <-writer:
			require.Fail(t, "the writer is not kept out", "%v", w.Err)
		default:
		}
	}
	cancel()
	require.ErrorIs(t, (<-writer).Err, redlatch.ErrNotAcquired)
	unlock(t, hold)
	free(t, s, rw)
}

// Readers of both clients hold the lock.
func TestARefusalNamesNoReader(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	far := newLock(t, s)
	rw := rreadwritelock.New(connect(t, s.URL()), far.Name(), rreadwritelock.WithoutWriterPreference())
	r := take(t, far.Read())
	w := later(within(t), rw.Write())
	waiting(t, s, rw, 1)
	ours := take(t, rw.Read())
	_, err := rw.Write().TryLock(within(t))
	var refusal *redlatch.LockError
	require.ErrorAs(t, err, &refusal)
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.Zero(t, refusal.Holder)
	unlock(t, r, ours)
	unlock(t, must(t, w, soon))
	free(t, s, rw)
}

func TestWritersAndReadersExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	locks := []*rreadwritelock.Lock{rw, same(t, s, rw)}
	ctx := within(t)
	var wg sync.WaitGroup
	var writing, reading, shared atomic.Int64
	sum := 0
	for i := range 24 {
		l := locks[i%2]
		wg.Go(func() {
			for n := range 6 {
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
	require.Equal(t, 48, sum)
	require.Positive(t, shared.Load())
	free(t, s, rw)
}

func TestWritersThatQueueLetReadersIn(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
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
}

// Writers of other processes are notified later than writers of the process that releases. A machine
// that stalls may favor one process for a round.
func TestWritersOfTwoProcessesHaveAsManyTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	one, two := connect(t, s.URL()), connect(t, s.URL())
	const enough = 30
	least := int64(0)
	for round := 0; round < 3 && least < enough; round++ {
		least = leastShare(t, one, two)
	}
	require.GreaterOrEqual(t, least, int64(enough), "percent of the turns")
}

// leastShare has the writers of two clients take turns at some locks. It returns the smallest
// percentage of turns that a client had at a lock.
func leastShare(t *testing.T, one, two *redlatch.Client) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	turns := make([][2]atomic.Int64, testlevel.Rounds(1, 4))
	var all sync.WaitGroup
	for i := range turns {
		name := redistest.Key(t)
		for j, client := range []*redlatch.Client{one, two} {
			for range 8 {
				all.Go(func() {
					l := rreadwritelock.New(client, name).Write()
					for ctx.Err() == nil {
						if h, err := l.Lock(ctx); err == nil {
							turns[i][j].Add(1)
							time.Sleep(time.Millisecond)
							assert.NoError(t, h.Unlock())
						}
					}
				})
			}
		}
	}
	all.Wait()
	least := int64(50)
	for i := range turns {
		a, b := turns[i][0].Load(), turns[i][1].Load()
		t.Log(a, b)
		least = min(least, 100*min(a, b)/max(a+b, 1))
	}
	return least
}
