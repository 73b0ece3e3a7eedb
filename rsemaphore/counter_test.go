package rsemaphore_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// newCounter returns a semaphore of n permits that only counts, on a client of its own.
func newCounter(t *testing.T, s *redistest.Server, n int, opts ...rsemaphore.Option) *rsemaphore.Semaphore {
	t.Helper()
	sem := rsemaphore.New(connect(t, s.URL(), noPoll()), redistest.Key(t), opts...)
	made, err := sem.TrySet(within(t), n, 0)
	require.NoError(t, err)
	require.True(t, made)
	return sem
}

func available(t *testing.T, sem *rsemaphore.Semaphore, want int) {
	t.Helper()
	n, err := sem.Available(within(t))
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// loaded has the server know the scripts of a counter: the reply that is lost later is theirs.
func loaded(t *testing.T, sem *rsemaphore.Semaphore) {
	t.Helper()
	require.NoError(t, sem.Acquire(within(t), 1))
	require.NoError(t, sem.Release(within(t), 1))
}

func taking(ctx context.Context, sem *rsemaphore.Semaphore, n int, opts ...rsemaphore.AcquireOption) <-chan error {
	came := make(chan error, 1)
	go func() { came <- sem.Acquire(ctx, n, opts...) }()
	return came
}

func mustCome(t *testing.T, came <-chan error) {
	t.Helper()
	select {
	case err := <-came:
		require.NoError(t, err)
	case <-time.After(promptly):
		require.FailNow(t, "it does not come")
	}
}

func TestACounterCounts(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 3)
	made, err := sem.TrySet(within(t), 9, 0)
	require.NoError(t, err)
	require.False(t, made)
	require.NoError(t, sem.Acquire(within(t), 2))
	require.ErrorIs(t, sem.TryAcquire(within(t), 2), redlatch.ErrNotAcquired)
	require.ErrorIs(t, sem.Acquire(within(t), 2, rsemaphore.WithWait(10*time.Millisecond)), redlatch.ErrNotAcquired)
	require.ErrorIs(t, sem.Acquire(within(t), 2, rsemaphore.WithWait(0)), redlatch.ErrNotAcquired)
	require.NoError(t, sem.TryAcquire(within(t), 1))
	available(t, sem, 0)
	require.NoError(t, sem.Release(within(t), 3))
	available(t, sem, 3)
	require.NoError(t, sem.Add(within(t), -5))
	available(t, sem, -2)
	n, err := sem.Drain(within(t))
	require.NoError(t, err)
	require.Equal(t, -2, n)
	require.NoError(t, sem.Add(within(t), 4))
	n, err = sem.Drain(within(t))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	available(t, sem, 0)
}

func TestACounterWithATimeToLiveEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := rsemaphore.New(connect(t, s.URL()), redistest.Key(t))
	made, err := sem.TrySet(within(t), 2, time.Hour)
	require.NoError(t, err)
	require.True(t, made)
	require.NoError(t, sem.Add(within(t), 1))
	_, err = sem.Drain(within(t))
	require.NoError(t, err)
	left, _ := s.Do(t, "PTTL", sem.Name()).(int64)
	require.Positive(t, left)
	_, err = sem.TrySet(within(t), 2, time.Microsecond)
	require.ErrorIs(t, err, redlatch.ErrInvalid)
}

func TestBadInputOfACounterIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 3)
	for _, n := range []int{math.MinInt, -1, 0, math.MaxInt32 + 1, math.MaxInt} {
		require.ErrorIs(t, sem.Acquire(within(t), n), redlatch.ErrInvalid)
		require.ErrorIs(t, sem.TryAcquire(within(t), n), redlatch.ErrInvalid)
		require.ErrorIs(t, sem.Release(within(t), n), redlatch.ErrInvalid)
	}
	for _, o := range []rsemaphore.AcquireOption{
		rsemaphore.WithLease(time.Second), rsemaphore.WithWatchdog(time.Second), rsemaphore.WithMaxHold(time.Second),
		rsemaphore.WithWait(10), rsemaphore.WithWait(-time.Second),
	} {
		require.ErrorIs(t, sem.Acquire(within(t), 1, o), redlatch.ErrInvalid)
	}
	require.ErrorIs(t, sem.TryAcquire(within(t), 1, rsemaphore.WithWait(time.Second)), redlatch.ErrInvalid)
	_, err := sem.TrySet(within(t), -1, 0)
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sem.Acquire(ended, 1), redlatch.ErrNotSent)
	require.ErrorIs(t, sem.Release(ended, 1), redlatch.ErrNotSent)
	available(t, sem, 3)
	for what, spoil := range map[string][]any{"a hash": {"HSET", "a", "1"}, "no number": {"SET", "seven"}} {
		sem := rsemaphore.New(connect(t, s.URL()), redistest.Key(t)+what)
		name, _ := spoil[0].(string)
		s.Do(t, name, append([]any{sem.Name()}, spoil[1:]...)...)
		require.ErrorIs(t, sem.Acquire(within(t), 1), redlatch.ErrWrongType, what)
		require.ErrorIs(t, sem.Release(within(t), 1), redlatch.ErrWrongType, what)
		_, err := sem.Drain(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
	}
}

func TestACounterNeverGivesOutMoreThanItHas(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	const permits = 4
	sem := newCounter(t, s, permits)
	far := rsemaphore.New(connect(t, s.URL(), noPoll()), sem.Name())
	ctx := within(t)
	var out atomic.Int64
	var wg sync.WaitGroup
	for i := range 30 {
		on := []*rsemaphore.Semaphore{sem, far}[i%2]
		wg.Go(func() {
			for k := range 20 {
				n := 1 + (i+k)%3
				if !assert.NoError(t, on.Acquire(ctx, n)) {
					return
				}
				assert.LessOrEqual(t, out.Add(int64(n)), int64(permits))
				if k%5 == 0 {
					time.Sleep(time.Millisecond) // others ask meanwhile
				}
				out.Add(int64(-n))
				assert.NoError(t, on.Release(ctx, n))
			}
		})
	}
	wg.Wait()
	available(t, sem, permits)
}

// A reply that is lost stays open: nothing is sent again, and nothing is given back for it.
func TestALostReplyOfACounterIsUncertain(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.New(connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second)), sem.Name())
	loaded(t, far)
	p.Blackhole(redistest.ToClient)
	require.ErrorIs(t, far.Acquire(within(t), 1), redlatch.ErrUncertain)
	p.Reset()
	p.Heal()
	require.Eventually(t, func() bool { n, err := far.Available(within(t)); return err == nil && n == 2 }, soon, time.Millisecond)
	p.Blackhole(redistest.ToClient)
	require.ErrorIs(t, far.Release(within(t), 1), redlatch.ErrUncertain)
	p.Reset()
	p.Heal()
	time.Sleep(200 * time.Millisecond)
	available(t, sem, 3)
}

// The caller has left, and the reply says that it was granted.
func TestPermitsOfALateReplyAreGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.New(connect(t, p.URL(), redlatch.WithCommandTimeout(soon)), sem.Name())
	loaded(t, far)
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	came := taking(ctx, far, 2)
	require.Eventually(t, func() bool { n, _ := sem.Available(within(t)); return n == 1 }, soon, time.Millisecond)
	cancel()
	err := <-came
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	require.ErrorIs(t, err, context.Canceled)
	available(t, sem, 1)
	p.Heal()
	require.Eventually(t, func() bool { n, _ := sem.Available(within(t)); return n == 3 }, soon, 5*time.Millisecond)
}

// A reply that comes soon after the end of the wait leaves nothing open.
func TestAnAttemptAtTheEndOfTheWaitIsSettledByItsReply(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.New(connect(t, p.URL(), redlatch.WithCommandTimeout(soon)), sem.Name())
	loaded(t, far)
	p.Latency(redistest.ToClient, 150*time.Millisecond)
	for _, n := range []int{2, 2} {
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Millisecond)
		err := far.Acquire(ctx, n)
		cancel()
		before, _ := sem.Available(within(t))
		if err != nil {
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, 1, before)
	}
}
