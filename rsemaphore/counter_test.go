package rsemaphore_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// inCounter returns a server inside a synctest bubble, a counter with n permits, and the same one on another
// client, whose calls can be delayed. The server knows its scripts.
func inCounter(t *testing.T, n int) (srv *redistest.MiniServer, sem, far *rsemaphore.Semaphore, tr *faketransport.Stalling, client *redlatch.Client) {
	t.Helper()
	srv, _ = bubble(t, n)
	tr, client = callers.Stalling(t, srv, noPoll())
	sem, far = rsemaphore.New(callers.InProcess(t, srv, noPoll()), "job"), rsemaphore.New(client, "job")
	if n > 0 {
		require.NoError(t, far.Acquire(t.Context(), 1))
		require.NoError(t, far.Release(t.Context(), 1))
		synctest.Wait()
	}
	return srv, sem, far, tr, client
}

func available(t *testing.T, sem *rsemaphore.Semaphore, want int) {
	t.Helper()
	n, err := sem.Available(within(t))
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// taking calls Acquire in a goroutine, and returns when it is waiting.
func taking(ctx context.Context, sem *rsemaphore.Semaphore, n int) <-chan error {
	came := make(chan error, 1)
	go func() { came <- sem.Acquire(ctx, n) }()
	synctest.Wait()
	return came
}

func TestCounterAcquireAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sem, _, _, _ := inCounter(t, 3)
		made, err := sem.TrySetPermits(within(t), 9, 0)
		require.NoError(t, err)
		require.False(t, made)
		require.NoError(t, sem.Acquire(within(t), 2))
		require.ErrorIs(t, sem.TryAcquire(within(t), 2), redlatch.ErrNotAcquired)
		require.ErrorIs(t, sem.Acquire(within(t), 2, rlock.WithWait(10*time.Millisecond)), redlatch.ErrNotAcquired)
		require.ErrorIs(t, sem.Acquire(within(t), 2, rlock.WithWait(0)), redlatch.ErrNotAcquired)
		require.NoError(t, sem.TryAcquire(within(t), 1))
		available(t, sem, 0)
		require.NoError(t, sem.Release(within(t), 3))
		available(t, sem, 3)
		require.NoError(t, sem.AddPermits(within(t), -5))
		available(t, sem, -2)
		n, err := sem.Drain(within(t))
		require.NoError(t, err)
		require.Equal(t, -2, n)
		require.NoError(t, sem.AddPermits(within(t), 4))
		n, err = sem.Drain(within(t))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		available(t, sem, 0)
	})
}

func TestCounterWithTTLExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, sem, _, _, _ := inCounter(t, 0)
		srv.Do(t, "DEL", "job")
		made, err := sem.TrySetPermits(t.Context(), 2, time.Hour)
		require.NoError(t, err)
		require.True(t, made)
		require.NoError(t, sem.AddPermits(t.Context(), 1))
		_, err = sem.Drain(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, time.Hour.Milliseconds(), srv.Do(t, "PTTL", "job"))
		_, err = sem.TrySetPermits(t.Context(), 2, time.Microsecond)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	})
}

func TestReleaseIfExistsDoesNotCreateSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, sem, _, _, _ := inCounter(t, 0)
		srv.Do(t, "DEL", "job")
		_, err := sem.TrySetPermits(t.Context(), 2, time.Minute)
		require.NoError(t, err)
		require.NoError(t, sem.Acquire(within(t), 2))
		waiter := taking(within(t), sem, 1)
		existed, err := sem.ReleaseIfExists(within(t), 1)
		require.NoError(t, err)
		require.True(t, existed)
		require.NoError(t, <-waiter)
		require.EqualValues(t, time.Minute.Milliseconds(), srv.Do(t, "PTTL", "job"))
		srv.Do(t, "DEL", "job")
		existed, err = sem.ReleaseIfExists(within(t), 1)
		require.NoError(t, err)
		require.False(t, existed)
		require.EqualValues(t, 0, srv.Do(t, "EXISTS", "job"))
		_, err = sem.ReleaseIfExists(within(t), 0)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	})
}

func TestCounterRejectsInvalidInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sem, _, _, _ := inCounter(t, 3)
		for _, n := range []int{math.MinInt, -1, 0, math.MaxInt32 + 1, math.MaxInt} {
			require.ErrorIs(t, sem.Acquire(within(t), n), redlatch.ErrInvalid)
			require.ErrorIs(t, sem.TryAcquire(within(t), n), redlatch.ErrInvalid)
			require.ErrorIs(t, sem.Release(within(t), n), redlatch.ErrInvalid)
		}
		for _, o := range []rlock.Option{
			rlock.WithLease(time.Second), rlock.WithWatchdog(time.Second), rlock.WithMaxHold(time.Second),
			rlock.WithOwner(codec.NewOwner(uuid.UUID{1}, 1)), rlock.WithPolling(time.Second), rlock.WithWait(10), rlock.WithWait(-time.Second),
		} {
			require.ErrorIs(t, sem.Acquire(within(t), 1, o), redlatch.ErrInvalid)
		}
		require.ErrorIs(t, sem.TryAcquire(within(t), 1, rlock.WithWait(time.Second)), redlatch.ErrInvalid)
		_, err := sem.TrySetPermits(within(t), -1, 0)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, sem.Acquire(ended, 1), redlatch.ErrNotSent)
		require.ErrorIs(t, sem.Release(ended, 1), redlatch.ErrNotSent)
		available(t, sem, 3)
	})
}

func TestPermitsNeverOversubscribed(t *testing.T) {
	for name, do := range map[string]func(c *redlatch.Client, ctx context.Context, n int, work func(context.Context) error) error{
		"counter": func(c *redlatch.Client, ctx context.Context, n int, work func(context.Context) error) error {
			sem := rsemaphore.New(c, "job")
			return errors.Join(sem.Acquire(ctx, n), work(ctx), sem.Release(ctx, n))
		},
		"expirable": func(c *redlatch.Client, ctx context.Context, n int, work func(context.Context) error) error {
			return rsemaphore.NewExpirable(c, "job").Do(ctx, n, work)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const permits, users = 5, 16
				srv, open := bubble(t, permits)
				clients := []*redlatch.Client{callers.InProcess(t, srv, noPoll()), callers.InProcess(t, srv, noPoll())}
				var out, most atomic.Int64
				var wg sync.WaitGroup
				for i := range users {
					wg.Go(func() {
						for k := range testlevel.Rounds(3, 25) {
							n := 1 + (i+k)%3
							assert.NoError(t, do(clients[i%2], t.Context(), n, func(context.Context) error {
								now := out.Add(int64(n))
								defer out.Add(-int64(n))
								assert.LessOrEqual(t, now, int64(permits))
								most.Store(max(most.Load(), now))
								time.Sleep(time.Duration(k%3) * time.Millisecond)
								return nil
							}), "caller %d, round %d", i, k)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, permits, most.Load(), "all are used")
				whole(t, open(), permits)
				require.Zero(t, srv.Do(t, "EXISTS", protocol.PermitsKey("job")))
			})
		})
	}
}

func TestCounterLostReplyIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, sem, far, _, _ := inCounter(t, 3)
		srv.LoseReplies(1)
		require.ErrorIs(t, far.Acquire(t.Context(), 1), redlatch.ErrUncertain)
		available(t, far, 2)
		srv.LoseReplies(1)
		require.ErrorIs(t, far.Release(t.Context(), 1), redlatch.ErrUncertain)
		time.Sleep(time.Minute) // there is no retry, and the first is not released
		available(t, sem, 3)
	})
}

// The reply to a grant arrives after the caller has returned. At first the server may reject the release, as
// a server without replicas or memory does.
func TestLateGrantIsReleased(t *testing.T) {
	for _, rejects := range []string{"", "NOREPLICAS Not enough good replicas to write.", "OOM command not allowed"} {
		t.Run(rejects, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, sem, far, tr, _ := inCounter(t, 3)
				tr.Mute(true)
				ctx, cancel := context.WithCancel(t.Context())
				came := taking(ctx, far, 2)
				cancel()
				err := <-came
				require.ErrorIs(t, err, redlatch.ErrUncertain)
				require.ErrorIs(t, err, context.Canceled)
				available(t, sem, 1)
				if rejects != "" {
					srv.FailWith(rejects)
				}
				tr.Mute(false)
				time.Sleep(time.Second)
				srv.Heal()
				time.Sleep(10 * time.Second)
				available(t, sem, 3)
			})
		})
	}
}

// The reply to a grant arrives while Close waits for it. A counter's permits never expire.
func TestGrantDuringCloseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sem, far, tr, client := inCounter(t, 3)
		tr.Mute(true)
		came := taking(t.Context(), far, 2)
		available(t, sem, 1)
		closed := make(chan error, 1)
		go func() { closed <- client.Close() }()
		require.ErrorIs(t, <-came, redlatch.ErrClosed)
		tr.Mute(false)
		require.NoError(t, <-closed)
		available(t, sem, 3)
	})
}

func TestCounterWaitersAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sem, far, _, _ := inCounter(t, 2)
		require.NoError(t, sem.Acquire(t.Context(), 2))
		big, small := taking(t.Context(), far, 2), taking(t.Context(), far, 1)
		require.NoError(t, sem.Release(t.Context(), 1))
		synctest.Wait()
		require.Len(t, small, 1)
		require.Empty(t, big)
		require.NoError(t, sem.Release(t.Context(), 2))
		require.NoError(t, errors.Join(<-small, <-big))
		available(t, sem, 0)
	})
}
