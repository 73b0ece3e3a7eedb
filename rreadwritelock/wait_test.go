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

// readers has n goroutines read in turns without a pause, so that one of them always has the
// lock. They end with the returned function.
func readers(t *testing.T, l *rlock.Lock, n int, each time.Duration) (stop func(), turns *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	turns = new(atomic.Int64)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, func(context.Context) error {
					time.Sleep(each + time.Duration(i)*time.Millisecond) // out of step
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
		// 20 may be inside, a burst lets in 32, and some come in before the writer is refused. Were it not
		// woken, there would be a burst each second, for ten.
		require.Less(t, meanwhile, int64(200))
		unlock(t, w)
		at := turns.Load()
		require.Eventually(t, func() bool { return turns.Load() > at }, soon, time.Millisecond, "readers come in again")
	}
	stop()
	free(t, s, rw)
}

// Without the preference readers that overlap keep the writer out, as Redisson's do: each takes
// the lock before the one before it leaves.
func TestReadersMayKeepAWriterOut(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := rreadwritelock.New(connect(t, s.URL()), redistest.Key(t), rreadwritelock.WithoutWriterPreference())
	hold := take(t, rw.Read())
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	writer := later(ctx, rw.Write())
	waiting(t, s, rw, 1)
	for range 50 { // more than a burst lets in
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

// Without the preference a reader is never held back, also not one that waits when the reader
// that asked for it gives up.
func TestAReaderThatIsNotHeldBackTakesTheLeadBesideAWriterThatWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	far := newLock(t, s)
	rw := rreadwritelock.New(connect(t, s.URL()), far.Name(), rreadwritelock.WithoutWriterPreference())
	w := take(t, far.Write())
	reads := enter(t, far.Read(), w)
	ctx, cancel := context.WithCancel(within(t))
	writer := later(ctx, rw.Write())
	waiting(t, s, rw, 1)
	first, giveUp := context.WithCancel(within(t))
	leader := later(first, rw.Read())
	waiting(t, s, rw, 1) // one subscription of the client has all
	count := func(n int64) func() bool { return func() bool { return rw.Read().Internal().Engine.Waiting() == n } }
	require.Eventually(t, count(2), soon, time.Millisecond)
	time.Sleep(50 * time.Millisecond) // the burst is over
	parked := later(within(t), rw.Read())
	require.Eventually(t, count(3), soon, time.Millisecond)
	giveUp()
	require.ErrorIs(t, (<-leader).Err, redlatch.ErrNotAcquired)
	unlock(t, w) // the lock is left to a reader
	other := take(t, rw.Read())
	came := must(t, parked, 5*time.Second)
	unlock(t, other, came, reads)
	unlock(t, must(t, writer, soon))
	cancel()
	free(t, s, rw)
}

// A refusal names the writer, and no reader, be it one of the same client.
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

// A writer that other processes keep out must not keep readers out for good.
func TestReadersAreHeldBackForAWhileOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	far := take(t, same(t, s, rw).Read())
	ctx, cancel := context.WithCancel(within(t))
	began := time.Now()
	w := later(ctx, rw.Write())
	waiting(t, s, rw, 1)
	time.Sleep(50 * time.Millisecond) // the burst is over
	if early, err := rw.Read().TryLock(within(t)); err == nil {
		require.GreaterOrEqual(t, time.Since(began), time.Second, "it is held back")
		unlock(t, early)
	} else {
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "it is held back")
	}
	r := must(t, later(within(t), rw.Read()), 15*time.Second) // the writer waits for twice as long
	require.Greater(t, time.Since(began), 900*time.Millisecond)
	unlock(t, r)
	r1, r2 := later(within(t), rw.Read()), later(within(t), rw.Read())
	cancel()
	require.ErrorIs(t, (<-w).Err, redlatch.ErrNotAcquired)
	unlock(t, must(t, r1, soon), must(t, r2, soon), far)
	free(t, s, rw)
}

func TestReadersThatWaitComeInTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	far := same(t, s, rw)
	for _, writer := range []*rlock.Lock{rw.Write(), far.Write()} {
		w := take(t, writer)
		var came []<-chan acquired
		for range 20 {
			came = append(came, later(within(t), rw.Read()))
		}
		waiting(t, s, rw, 1)
		began := time.Now()
		unlock(t, w)
		holds := make([]*rlock.Hold, 0, len(came))
		for _, c := range came { // each while all before it hold the lock
			holds = append(holds, must(t, c, 3*time.Second))
		}
		require.Less(t, time.Since(began), 3*time.Second)
		unlock(t, holds...)
	}
	free(t, s, rw)
}

// A leader that gives up leaves its task to another reader.
func TestAReaderThatGivesUpLeavesTheOthersAwake(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	w := take(t, same(t, s, rw).Write())
	for range 5 {
		ctx, cancel := context.WithCancel(within(t))
		leader := later(ctx, rw.Read())
		waiting(t, s, rw, 1)
		other := later(within(t), rw.Read())
		cancel()
		require.ErrorIs(t, (<-leader).Err, redlatch.ErrNotAcquired)
		waiting(t, s, rw, 1)
		unlock(t, w)
		unlock(t, must(t, other, 3*time.Second))
		w = take(t, same(t, s, rw).Write())
	}
	unlock(t, w)
	free(t, s, rw)
}

// Readers and writers of two clients add to a number that only the writers may change.
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

// The readers that waited come in before the next writer of their process.
func TestReadersThatWaitComeBeforeTheNextWriter(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	first := take(t, rw.Write())
	for range 20 {
		next := later(within(t), rw.Write())
		one := later(within(t), rw.Read())
		waiting(t, s, rw, 1)
		two := later(within(t), rw.Read())
		all := func() bool { return rw.Read().Internal().Engine.Waiting() == 3 }
		require.Eventually(t, all, soon, time.Millisecond)
		unlock(t, first)
		r1, r2 := must(t, one, soon), must(t, two, soon)
		select {
		case <-next:
			require.Fail(t, "the writer went first")
		default:
		}
		unlock(t, r1, r2)
		first = must(t, next, soon)
	}
	unlock(t, first)
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

// The writers of one process go on one after the other, and yet let those of another process
// in, which hear of a release later than they. Alone, each has its way by chance: so four locks.
// A machine that stalls may favor one of them for a round.
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

// leastShare has the writers of two clients take turns at some locks for a while, without a pause.
// It returns the percentage of the turns at a lock that one of them had, the smallest of all.
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
