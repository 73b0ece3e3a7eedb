package rsemaphore_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestHeldPermitsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open()
		h := take(t, sem, 2, rlock.WithWatchdog(6*time.Second))
		fixed := take(t, sem, 1, rlock.WithLease(2*time.Second))
		time.Sleep(7500 * time.Millisecond) // longer than both leases
		require.NoError(t, h.Err())
		counts(t, sem, 1, 3)
		require.ErrorIs(t, fixed.Err(), redlatch.ErrLost)
		require.ErrorIs(t, fixed.Release(), redlatch.ErrLost)
		release(t, h)
		whole(t, sem, 3)
	})
}

func TestHoldLosingPermitReleasesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open()
		h, kept := take(t, sem, 2, rlock.WithWatchdog(6*time.Second)), take(t, sem, 1, rlock.WithWatchdog(6*time.Second))
		ctx := h.Context(t.Context())
		n, err := open().Release(t.Context(), h.IDs()[1])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		began := time.Now()
		ends(t, ctx)
		require.LessOrEqual(t, time.Since(began), 2*time.Second, "by the next renewal")
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, h.Release(), redlatch.ErrLost)
		require.NoError(t, kept.Err(), "others were renewed by the same script")
		time.Sleep(time.Second)
		counts(t, sem, 2, 3)
		release(t, kept)
		whole(t, sem, 3)
	})
}

// Without a renewal, the release detects the loss.
func TestReleaseReportsLostPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 3)
		sem := open()
		h := take(t, sem, 3)
		_, err := sem.Release(t.Context(), h.IDs()[0])
		require.NoError(t, err)
		require.ErrorIs(t, h.Release(), redlatch.ErrLost)
		whole(t, sem, 3)
	})
}

func TestExpiredLeaseWakesWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		require.NoError(t, take(t, open(), 2, rlock.WithLease(time.Second)).LetExpire())
		other, began := open(noPoll()), time.Now()
		a, b := later(within(t), other, 1), later(within(t), other, 1)
		release(t, must(t, a), must(t, b))
		require.Less(t, time.Since(began), 2*time.Second)
		whole(t, other, 2)
	})
}

func TestPermitsForgottenByServerAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := bubble(t, 2)
		h := take(t, open(), 2, rlock.WithWatchdog(time.Second))
		ctx := h.Context(t.Context())
		srv.Do(t, "DEL", "job", "{job}:timeout")
		ends(t, ctx)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, h.Release(), redlatch.ErrLost)
		require.Zero(t, srv.Do(t, "EXISTS", "job"), "nothing was created")
	})
}

// Holds are not reentrant: with the context of a hold, a caller can acquire other permits.
func TestContextOfLostHoldCanAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, open := bubble(t, 2)
		sem := open()
		h := take(t, sem, 1, rlock.WithLease(2*time.Second))
		ctx := context.WithoutCancel(h.Context(t.Context()))
		for _, want := range []error{nil, redlatch.ErrLost} {
			require.ErrorIs(t, h.Err(), want)
			other, err := sem.Acquire(ctx, 1, rlock.WithWait(time.Minute))
			require.NoError(t, err)
			release(t, other)
			ends(t, h.Context(t.Context()))
		}
	})
}

// Any client may release a permit by its id, like release(id) in Java.
func TestPermitReleasedByOtherClientReported(t *testing.T) {
	for name, learns := range map[string]func(h *rsemaphore.Hold) error{
		"at its renewal": func(h *rsemaphore.Hold) error {
			<-h.Context(context.Background()).Done()
			return h.Err()
		},
		"at its release": (*rsemaphore.Hold).Release,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, other, held := inBubble(t, nil)
				n, err := other.Release(t.Context(), held.IDs()...)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				err = learns(held)
				require.ErrorIs(t, err, redlatch.LossTaken)
				require.ErrorContains(t, err, "released by another client")
				available, err := other.Available(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, available, "the permit was released once")
			})
		})
	}
}

// When the message from a release wakes a caller, the server is busy for longer than a command timeout:
// the caller must try again as soon as the server replies, since nothing else may wake it.
func TestWokenCallerRetriesAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server *embedded.Server
		srv, near, held := inBubble(t, redlatch.WithObserver(redlatch.Observer{Woken: func(context.Context, redlatch.Woken) {
			server.FailWith("BUSY Redis is busy running a script")
		}}))
		server = srv.Server
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = near.Acquire(ctx, 1) }()
		synctest.Wait()
		came := make(chan *rsemaphore.Hold, 1)
		go func() {
			h, _ := near.Acquire(t.Context(), 1)
			came <- h
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		require.NoError(t, held.Release())
		time.Sleep(4 * time.Second)
		server.Heal()
		began := time.Now()
		h := <-came
		require.NotNil(t, h)
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		require.NoError(t, h.Release())
	})
}

func TestTooManyPermitsHasCertainOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		_, sem, _ := inBubble(t, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		_, err := sem.TryAcquire(t.Context(), 2)
		require.ErrorIs(t, err, rsemaphore.ErrTooMany)
		time.Sleep(time.Second)
		synctest.Wait()
		require.NotContains(t, said.String(), "unresolved call")
	})
}

func TestWaitForUnsetSemaphoreExplainsCause(t *testing.T) {
	const says = "the semaphore was never set or was deleted: call TrySet"
	for kind, of := range map[string]func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error){
		"permits": func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error) {
			s := rsemaphore.NewExpirable(c, "job")
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, 1); return err },
				func(ctx context.Context) error { _, err := s.TryAcquire(ctx, 1); return err },
				func() error { return second(s.TrySetPermits(context.Background(), 1)) }
		},
		"counter": func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error) {
			s := rsemaphore.New(c, "job")
			return func(ctx context.Context) error { return s.Acquire(ctx, 1) },
				func(ctx context.Context) error { return s.TryAcquire(ctx, 1) },
				func() error { return second(s.TrySetPermits(context.Background(), 1, 0)) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, logger := redistest.NewJournal()
				srv := redistest.Mini(t, embedded.WithInProcess())
				c, err := redlatch.New(srv.Server.Dial, redlatch.WithLogger(logger))
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				acquire, try, set := of(c)
				err = try(t.Context())
				require.Regexp(t, "redlatch: lock not acquired: "+says+`(Permits)?$`, err)
				var refused *redlatch.LockError
				require.ErrorAs(t, err, &refused)
				require.Zero(t, refused.TTL)
				require.NotContains(t, strings.Join(log.Lines(), ""), says, "no wait begins")

				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- acquire(ctx) }()
				time.Sleep(30 * time.Second)
				require.Equal(t, 1, strings.Count(strings.Join(log.Lines(), "\n"), says), "once for each wait: %v", log.Lines())
				err = <-ended
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, says)

				require.NoError(t, set())
				require.NoError(t, acquire(t.Context()))
				err = try(t.Context())
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				require.NotContains(t, err.Error(), "never set", "it is only acquired")
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }
