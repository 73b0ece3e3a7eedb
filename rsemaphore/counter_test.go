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

// behind returns a counter of three permits, and the same one on a client behind a proxy. The server knows
// its scripts: a lost reply is that of a script.
func behind(t *testing.T, s *redistest.Server, timeout time.Duration) (sem, far *rsemaphore.Semaphore, p *redistest.Proxy, c *redlatch.Client) {
	t.Helper()
	sem, p = newCounter(t, s, 3), redistest.NewProxy(t, s.Addr())
	c = connect(t, p.URL(), redlatch.WithCommandTimeout(timeout))
	far = rsemaphore.New(c, sem.Name())
	require.NoError(t, far.Acquire(within(t), 1))
	require.NoError(t, far.Release(within(t), 1))
	return sem, far, p, c
}

func becomes(t *testing.T, sem *rsemaphore.Semaphore, n int) {
	t.Helper()
	require.Eventually(t, func() bool { got, err := sem.Available(within(t)); return err == nil && got == n }, soon, time.Millisecond)
}

func TestALostReplyOfACounterIsUncertain(t *testing.T) {
	t.Parallel()
	sem, far, p, _ := behind(t, redistest.Shared(t), time.Second)
	p.Blackhole(redistest.ToClient)
	require.ErrorIs(t, far.Acquire(within(t), 1), redlatch.ErrUncertain)
	p.Reset()
	p.Heal()
	becomes(t, far, 2)
	p.Blackhole(redistest.ToClient)
	require.ErrorIs(t, far.Release(within(t), 1), redlatch.ErrUncertain)
	p.Reset()
	p.Heal()
	time.Sleep(200 * time.Millisecond) // no retry, and no release of the first
	available(t, sem, 3)
}

// The reply of a grant arrives after the caller has returned. At first the server may reject the release, as
// one without replicas or memory does.
func TestPermitsOfALateReplyAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, rejects := range []string{"", "min-replicas-to-write", "maxmemory"} {
		t.Run(rejects, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			sem, far, p, _ := behind(t, s, soon)
			p.Blackhole(redistest.ToClient)
			ctx, cancel := context.WithCancel(t.Context())
			came := taking(ctx, far, 2)
			becomes(t, sem, 1)
			cancel()
			err := <-came
			require.ErrorIs(t, err, redlatch.ErrUncertain)
			require.ErrorIs(t, err, context.Canceled)
			available(t, sem, 1)
			if rejects != "" {
				s.Do(t, "CONFIG", "SET", rejects, 1)
			}
			p.Heal()
			if rejects != "" {
				time.Sleep(200 * time.Millisecond)
				s.Do(t, "CONFIG", "SET", rejects, 0)
			}
			becomes(t, sem, 3)
		})
	}
}

// A reply soon after the end of the wait leaves nothing in doubt.
func TestAnAttemptAtTheEndOfTheWaitIsSettledByItsReply(t *testing.T) {
	t.Parallel()
	sem, far, p, _ := behind(t, redistest.Shared(t), soon)
	p.Latency(redistest.ToClient, 150*time.Millisecond)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Millisecond)
		err := far.Acquire(ctx, 2)
		cancel()
		if err != nil {
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		available(t, sem, 1)
	}
}

// The reply of a grant arrives while Close waits for it. A counter's permits never expire.
func TestPermitsThatAreGrantedAsTheClientClosesAreGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for range 10 {
		sem, far, p, client := behind(t, s, soon)
		p.Blackhole(redistest.ToClient)
		came := taking(t.Context(), far, 2)
		becomes(t, sem, 1)
		closed := make(chan error, 1)
		go func() { closed <- client.Close() }()
		require.ErrorIs(t, <-came, redlatch.ErrClosed)
		p.Heal()
		require.NoError(t, <-closed)
		available(t, sem, 3)
	}
}
