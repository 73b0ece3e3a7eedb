package rsemaphore_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rsemaphore"
)

// Redisson's lost wake-up S1.
func TestAReleaseOfThreePermitsWakesThreeWaiters(t *testing.T) {
	t.Parallel()
	sem := newSemaphore(t, 3)
	other := same(t, sem)
	three := take(t, sem, 3)
	waiters := []<-chan acquired{later(within(t), other, 1), later(within(t), other, 1), later(within(t), other, 1)}
	listening(t, sem.Name(), 1)
	release(t, three)
	for _, w := range waiters {
		release(t, must(t, w))
	}
	whole(t, sem, 3)
}

// Redisson's lost wake-up S2.
func TestABigWaiterLeavesTheWakeUpToASmallOne(t *testing.T) {
	t.Parallel()
	sem := newSemaphore(t, 2)
	other := same(t, sem)
	one, two := take(t, sem, 1), take(t, sem, 1)
	big := later(within(t), other, 2)
	listening(t, sem.Name(), 1)
	small := later(within(t), other, 1)
	waits(t, small)
	release(t, one)
	h := must(t, small)
	waits(t, big)
	release(t, h, two)
	release(t, must(t, big))
	whole(t, sem, 2)
}

func TestASmallCallerTakesWhatABigOneCannotUse(t *testing.T) {
	t.Parallel()
	sem := newSemaphore(t, 3)
	two := take(t, sem, 2)
	big := later(within(t), sem, 2)
	listening(t, sem.Name(), 1)
	release(t, take(t, sem, 1))
	h, err := sem.TryAcquire(within(t), 1)
	require.NoError(t, err)
	waits(t, big)
	release(t, h, two)
	release(t, must(t, big))
	whole(t, sem, 3)
}

func TestInStrictOrderNoneIsPassed(t *testing.T) {
	t.Parallel()
	sem := newSemaphore(t, 3, rsemaphore.WithStrictOrder())
	two := take(t, sem, 2)
	big := later(within(t), sem, 2)
	listening(t, sem.Name(), 1)
	small := later(within(t), sem, 1)
	waits(t, small)
	_, err := sem.TryAcquire(within(t), 1)
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	release(t, two)
	release(t, must(t, big), must(t, small))
	whole(t, sem, 3)
}

func TestCallersOfOneClientAreServedInOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client := connect(t, s.URL(), noPoll())
	sem := rsemaphore.NewExpirable(client, redistest.Key(t))
	require.NoError(t, sem.SetPermits(within(t), 1))
	h := take(t, sem, 1)
	const callers = 20
	order := make(chan int, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			h, err := sem.Acquire(within(t), 1)
			if assert.NoError(t, err) {
				order <- i
				assert.NoError(t, h.Release())
			}
		})
		require.Eventually(t, func() bool { return engine.EngineOf(client).Waiting() == int64(i)+1 }, soon, 100*time.Microsecond)
	}
	release(t, h)
	wg.Wait()
	for i := range callers {
		require.Equal(t, i, <-order)
	}
	whole(t, sem, 1)
}

// The permit returns before the first attempt, the subscription, or the second attempt, or after it.
func TestAPermitThatComesBackAsOneBeginsToWaitIsNotMissed(t *testing.T) {
	t.Parallel()
	const workers = 3
	rounds := testlevel.Rounds(60, 200)
	s := redistest.Shared(t)
	holders, waiters := connect(t, s.URL()), connect(t, s.URL(), noPoll())
	var wg sync.WaitGroup
	for i := range workers {
		name := redistest.Key(t) + strconv.Itoa(i)
		holder, other := rsemaphore.NewExpirable(holders, name), rsemaphore.NewExpirable(waiters, name)
		_, err := holder.TrySetPermits(within(t), 2)
		require.NoError(t, err)
		wg.Go(func() {
			for round := range rounds {
				h, err := holder.Acquire(t.Context(), 2)
				if !assert.NoError(t, err) {
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), promptly)
				a, b := later(ctx, other, 1), later(ctx, other, 1)
				time.Sleep(rand.N(600 * time.Microsecond))
				assert.NoError(t, h.Release())
				for _, w := range []<-chan acquired{a, b} {
					if got := <-w; assert.NoError(t, got.Err, "round %d", round) {
						assert.NoError(t, got.Hold.Release())
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

func TestWaitersThatGiveUpLeaveTheOthersAwake(t *testing.T) {
	t.Parallel()
	sem := newSemaphore(t, 2)
	other := same(t, sem)
	for range 30 {
		h := take(t, sem, 2)
		ctx, cancel := context.WithCancel(within(t))
		var leave []<-chan acquired
		for range 3 {
			leave = append(leave, later(ctx, other, 2))
		}
		listening(t, sem.Name(), 1)
		stay := later(within(t), other, 1)
		time.Sleep(rand.N(2 * time.Millisecond))
		go cancel()
		release(t, h)
		for _, l := range leave {
			if a := <-l; a.Err == nil {
				release(t, a.Hold)
			} else {
				require.ErrorIs(t, a.Err, context.Canceled)
			}
		}
		release(t, must(t, stay))
		cancel()
	}
	whole(t, sem, 2)
}

func TestAMessageMissedInAGapIsMadeUpFor(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, 2)
	p := redistest.NewProxy(t, s.Addr())
	var refused atomic.Int64
	count := redlatch.Observer{Attempted: func(context.Context, redlatch.Attempted) { refused.Add(1) }}
	far := rsemaphore.NewExpirable(connect(t, p.URL(), noPoll(), redlatch.WithObserver(count)), sem.Name())
	for range 3 {
		h, before := take(t, sem, 2), refused.Load()
		a := later(within(t), far, 1)
		// After its second attempt it sleeps, and the other behind it: no reply can be lost.
		require.Eventually(t, func() bool { return refused.Load() >= before+2 }, soon, time.Millisecond)
		b := later(within(t), far, 1)
		p.Refuse(true)
		p.Reset()
		listening(t, sem.Name(), 0)
		release(t, h)
		p.Refuse(false)
		release(t, must(t, a), must(t, b))
	}
	whole(t, sem, 2)
}

func TestCloseAndShutdownEndTheWait(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, 1)
	h := take(t, sem, 1)
	for _, end := range []func(c *redlatch.Client) error{(*redlatch.Client).Close, func(c *redlatch.Client) error { return c.Shutdown(within(t)) }} {
		client, err := redlatch.Open(t.Context(), s.URL(), noPoll())
		require.NoError(t, err)
		far := rsemaphore.NewExpirable(client, sem.Name())
		var all []<-chan acquired
		for range 3 {
			all = append(all, later(within(t), far, 1))
		}
		listening(t, sem.Name(), 1)
		require.NoError(t, end(client))
		for _, w := range all {
			require.ErrorIs(t, (<-w).Err, redlatch.ErrClosed)
		}
		_, err = far.Acquire(within(t), 1)
		require.ErrorIs(t, err, redlatch.ErrClosed)
	}
	release(t, h)
	whole(t, sem, 1)
}

func TestALostReplyIsSettledByTheIDs(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.NewExpirable(connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second), redlatch.WithWatchdogTimeout(time.Hour)), sem.Name())
	release(t, take(t, far, 1)) // the server knows the scripts
	p.Blackhole(redistest.ToClient)
	_, err := far.Acquire(within(t), 2)
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	counts(t, sem, 1, 3)
	p.Heal()
	whole(t, sem, 3)
	// A release whose reply is lost is retried.
	h := take(t, far, 2)
	p.Blackhole(redistest.ToClient)
	ended := make(chan error, 1)
	go func() { ended <- h.Release() }()
	whole(t, sem, 3)
	p.Reset()
	p.Heal()
	require.NoError(t, <-ended)
	whole(t, sem, 3)
}

func TestALateReplyGivesThePermitsBack(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.NewExpirable(connect(t, p.URL(), redlatch.WithWatchdogTimeout(time.Hour), redlatch.WithCommandTimeout(soon)), sem.Name())
	release(t, take(t, far, 1)) // the server knows the scripts
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	came := later(ctx, far, 2)
	require.Eventually(t, func() bool { n, _ := sem.Acquired(within(t)); return n == 2 }, soon, time.Millisecond)
	cancel()
	require.ErrorIs(t, (<-came).Err, redlatch.ErrUncertain)
	counts(t, sem, 1, 3)
	p.Heal()
	whole(t, sem, 3)
}

func TestWaitersOfACounterAreServedAsTheOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newCounter(t, s, 2)
	far := rsemaphore.New(connect(t, s.URL(), noPoll()), sem.Name())
	require.NoError(t, sem.Acquire(within(t), 2))
	big := taking(within(t), far, 2)
	listening(t, sem.Name(), 1)
	small := taking(within(t), far, 1)
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, sem.Release(within(t), 1))
	mustCome(t, small)
	require.NoError(t, sem.Release(within(t), 2))
	mustCome(t, big)
	available(t, sem, 0)
}

// Java's acquire(365_000, TimeUnit.DAYS) has a lease beyond time.Duration.
func TestAWaiterForAPermitOfAThousandYearsDoesNotAskWithoutAPause(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	var asked atomic.Int64
	client := connect(t, s.URL(), noPoll(), redlatch.WithObserver(redlatch.Observer{
		Attempted: func(context.Context, redlatch.Attempted) { asked.Add(1) },
	}))
	sem := rsemaphore.NewExpirable(client, redistest.Key(t))
	ends := time.Now().UnixMilli() + 365_000*24*time.Hour.Milliseconds()
	s.Do(t, "SET", sem.Name(), 0)
	s.Do(t, "ZADD", codec.PermitsKey(sem.Name()), ends, "0123456789abcdef")
	_, err := sem.Acquire(within(t), 1, rsemaphore.WithWait(300*time.Millisecond))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.Less(t, asked.Load(), int64(5))
	in, err := sem.Inspect(within(t))
	require.NoError(t, err)
	require.Greater(t, in.Permits[0].Left, 250*365*24*time.Hour)
}
