package rmultilock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/transport"
)

// inBubble returns a server inside a synctest bubble, and a client of it.
func inBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	client, err := redlatch.New(srv.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return srv, client
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
		srv.Do(t, "HSET", "b", redlatch.NewOwner(uuid.New(), 1).String(), 1)
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
		_, err := l.Lock(t.Context(), rlock.WithoutWakeUps(time.Second))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		require.Empty(t, taken)
	})
}

// silentReplicas is a transport whose replicas never answer.
type silentReplicas struct{ transport.Transport }

func (silentReplicas) Replicate(*transport.Call, int, time.Duration, transport.Replicated) {}

func TestLossDuringReplicaWaitReturnsErrNotAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.NewWithTransport(silentReplicas{redisconn.NewRedigo(redisconn.Config{
			Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
			DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})}, redlatch.WithReplicaSync(1, time.Minute))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		_, err = rmultilock.New(client, "a", "b").Lock(t.Context(), rlock.WithLease(10*time.Second))
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorContains(t, err, "lease")
		require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
	})
}

// silenced is a transport to a server that stops answering once silent is set.
type silenced struct {
	transport.Transport

	silent bool
}

func (s *silenced) Start(call *transport.Call, done transport.Done) {
	if s.silent {
		call.Claim(0)
		return
	}
	s.Transport.Start(call, done)
}

func TestUnlockTakesOneCommandTimeoutForAllLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		tr := &silenced{Transport: redisconn.NewRedigo(redisconn.Config{
			Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
			DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		h := take(t, rmultilock.Of(rlock.New(client, "a"), rlock.New(client, "b"), rlock.New(client, "c"),
			rfairlock.New(client, "d"), rfairlock.New(client, "e"), rfencedlock.New(client, "f")))
		for _, name := range []string{"a", "b"} { // which keep their locks
			_, err := rlock.New(client, name).Lock(h.Context(t.Context()))
			require.NoError(t, err)
		}
		tr.silent = true
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
		require.NotContains(t, said.String(), "open outcome")
	})
}
