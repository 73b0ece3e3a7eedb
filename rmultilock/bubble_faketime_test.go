package rmultilock_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/transport"
)

// inBubble returns a server inside a synctest bubble, and a client for it.
func inBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	return srv, callers.InProcess(t, srv, opts...)
}

// cut is a transport to a server that does not reply to any call while it is silent, and whose replicas
// never reply.
type cut struct {
	transport.Transport
	silent atomic.Bool
}

func (c *cut) Start(call *transport.Call, done transport.Done) {
	if c.silent.Load() {
		call.Claim(0)
		return
	}
	c.Transport.Start(call, done)
}

func (*cut) Replicate(*transport.Call, int, time.Duration, func(any, int64, error)) {}

// inCutBubble is like inBubble, but with a transport that can be cut.
func inCutBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *cut, *redlatch.Client) {
	t.Helper()
	srv, tr := redistest.Mini(t, embedded.WithInProcess()), &cut{}
	return srv, tr, callers.Over(t, srv, func(near transport.Transport) transport.Transport {
		tr.Transport = near
		return tr
	}, opts...)
}

func exists(t *testing.T, srv *redistest.MiniServer, names ...any) int64 {
	t.Helper()
	n, _ := srv.Do(t, "EXISTS", names...).(int64)
	return n
}

func ends(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		require.FailNow(t, "the hold does not end")
	}
}

func TestLostMemberLosesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithWatchdogTimeout(6*time.Second))
		h := take(t, rmultilock.New(client, "a", "b", "c"))
		ctx := h.Context(t.Context())
		srv.Do(t, "DEL", "b")
		ends(t, ctx)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, h.Err(), redlatch.ErrLost)
		var loss redlatch.Loss
		require.ErrorAs(t, h.Err(), &loss)
		require.ErrorContains(t, h.Err(), `"b"`, "it names the lost one")
		require.Zero(t, h.Remaining())
		require.EqualValues(t, 2, exists(t, srv, "a", "c"), "the other locks are held until Unlock")
		err := h.Unlock()
		require.ErrorIs(t, err, redlatch.ErrLost)
		require.Len(t, unwrap(err), 1, "one error for one loss")
		require.Zero(t, exists(t, srv, "a", "c"))

		h = take(t, rmultilock.New(client, "a", "b", "c"))
		srv.Do(t, "DEL", "b")
		ends(t, h.Context(t.Context()))
		time.Sleep(6*time.Second + time.Millisecond)
		require.Zero(t, exists(t, srv, "a", "c"), "without Unlock their leases expire")
		_ = h.Unlock()
	})
}

func TestMemberLostDuringAcquireEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithWatchdogTimeout(time.Second))
		srv.Do(t, "HSET", "c", codec.NewOwner(uuid.New(), 1).String(), 1)
		came := later(within(t), rmultilock.Of(rlock.New(client, "a"), rlock.New(client, "b"), rfairlock.New(client, "c")))
		synctest.Wait()
		require.EqualValues(t, 2, exists(t, srv, "a", "b"))
		srv.Do(t, "DEL", "a")
		err := (<-came).Err
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NotErrorIs(t, err, redlatch.ErrLost, "it never had the hold")
		require.ErrorContains(t, err, `"a": `)
		require.EqualValues(t, 1, exists(t, srv, "a", "b", "c"))
	})
}

func TestHoldEndsAtMaxHoldAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rmultilock.New(client, "a", "b", "c")
		h := take(t, l, rlock.WithMaxHold(2*time.Second))
		ends(t, h.Context(t.Context()))
		require.ErrorIs(t, h.Err(), redlatch.ErrMaxHold)
		err := h.Unlock()
		require.ErrorIs(t, err, redlatch.ErrMaxHold)
		require.Len(t, unwrap(err), 1)
		require.Zero(t, exists(t, srv, "a", "b", "c"))

		h = take(t, l, rlock.WithLease(time.Minute))
		deadline, ok := h.Context(t.Context()).Deadline()
		require.True(t, ok)
		require.InDelta(t, time.Minute, time.Until(deadline), float64(5*time.Second))
		require.NoError(t, client.Close())
		require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
		require.ErrorIs(t, h.Unlock(), redlatch.ErrClosed)
		require.EqualValues(t, 3, exists(t, srv, "a", "b", "c"), "they expire with their leases")
	})
}

// Redis is unreachable for longer than the watchdog timeout, but not as long as the requested
// lease.
func TestReleaseRetriedForRequestedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, tr, client := inCutBubble(t, redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
		one, err := rlock.New(client, "c").Lock(t.Context(), rlock.WithLease(10*time.Minute))
		require.NoError(t, err)
		several := take(t, rmultilock.New(client, "a", "b"), rlock.WithLease(10*time.Minute))
		tr.silent.Store(true)
		require.Error(t, one.Unlock())
		require.Error(t, several.Unlock())
		time.Sleep(15 * time.Second)
		require.EqualValues(t, 3, exists(t, srv, "a", "b", "c"))
		tr.silent.Store(false)
		time.Sleep(10 * time.Second)
		require.Zero(t, exists(t, srv, "a", "b", "c"))
	})
}

// A lock was reentered with a longer lease, and the release of that hold was lost: the lock may last for
// that lease, so the release of all locks must be retried for as long.
func TestReleaseRetriedForInnerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, tr, client := inCutBubble(t, redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
		several := take(t, rmultilock.New(client, "a", "b"))
		inner, err := rlock.New(client, "b").Lock(several.Context(t.Context()), rlock.WithLease(10*time.Minute))
		require.NoError(t, err)
		tr.silent.Store(true)
		_ = inner.Unlock()
		require.Error(t, several.Unlock())
		time.Sleep(15 * time.Second)
		require.EqualValues(t, 1, exists(t, srv, "b"))
		tr.silent.Store(false)
		time.Sleep(10 * time.Second)
		require.Zero(t, exists(t, srv, "b"))
	})
}

func TestSlowObserverDoesNotDelayLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, goOn := make(chan struct{}, 2), make(chan struct{})
		srv, client := inBubble(t, redlatch.WithObserver(redlatch.Observer{
			Ended: func(context.Context, redlatch.Ended) { heard <- struct{}{}; <-goOn },
		}))
		h := take(t, rmultilock.New(client, "a", "b"))
		ended := h.Context(t.Context()).Done()
		srv.Do(t, "DEL", "a")
		<-heard
		synctest.Wait()
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		err := h.Err()
		close(goOn)
		require.ErrorIs(t, err, redlatch.ErrLost)
		require.True(t, over, "the context has ended")
		require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
	})
}

func TestCloseDuringWaitForSecondLockReturnsErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		srv.Do(t, "HSET", "b", codec.NewOwner(uuid.New(), 1).String(), 1)
		came := later(t.Context(), rmultilock.Of(rlock.New(client, "a"), rfairlock.New(client, "b")))
		synctest.Wait()
		require.NoError(t, client.Close())
		require.ErrorIs(t, (<-came).Err, redlatch.ErrClosed)
	})
}

func TestOptionInvalidForOneLockTakesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []string
		_, client := inBubble(t, redlatch.WithObserver(redlatch.Observer{
			Acquired: func(ctx context.Context, e redlatch.Acquired) context.Context {
				taken = append(taken, e.Name)
				return ctx
			},
		}))
		l := rmultilock.Of(rlock.New(client, "a"), rfairlock.New(client, "b"))
		_, err := l.Lock(t.Context(), rlock.WithPolling(time.Second))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		require.Empty(t, taken)
	})
}

func TestLossDuringReplicaWaitReturnsErrNotAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, client := inCutBubble(t, redlatch.WithReplicaSync(1, time.Minute))
		_, err := rmultilock.New(client, "a", "b").Lock(t.Context(), rlock.WithLease(10*time.Second))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorContains(t, err, "lease")
		require.NotErrorIs(t, err, context.Canceled, "the caller's context is live")
	})
}

func TestReplicaWaitEndsWithTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, client := inCutBubble(t, redlatch.WithReplicaSync(1, time.Minute))
		began := time.Now()
		_, err := rmultilock.New(client, "a", "b").Lock(t.Context(), rlock.WithWait(2*time.Second))
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Zero(t, exists(t, srv, "a", "b"))
	})
}

func TestUnlockTakesOneCommandTimeoutForAllLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tr, client := inCutBubble(t)
		h := take(t, rmultilock.Of(rlock.New(client, "a"), rlock.New(client, "b"), rlock.New(client, "c"),
			rfairlock.New(client, "d"), rfairlock.New(client, "e"), rfencedlock.New(client, "f")))
		for _, name := range []string{"a", "b"} { // which keep their locks
			_, err := rlock.New(client, name).Lock(h.Context(t.Context()))
			require.NoError(t, err)
		}
		tr.silent.Store(true)
		began := time.Now()
		require.ErrorIs(t, h.Unlock(), redlatch.ErrUncertain)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestWrongTypeLeavesNothingInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		srv, client := inBubble(t, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		srv.Do(t, "SET", "b", "text")
		_, err := rmultilock.New(client, "a", "b").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		time.Sleep(time.Second)
		require.NoError(t, client.Close())
		require.NotContains(t, said.String(), "unresolved call")
	})
}
