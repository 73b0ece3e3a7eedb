package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// downs are the ways in which Redis can be away.
var downs = map[string]func(t *testing.T, w *wire, client *redlatch.Client){
	"refuses connections": func(_ *testing.T, w *wire, _ *redlatch.Client) { w.refuse.Store(true); w.reset() },
	"never answers":       func(_ *testing.T, w *wire, _ *redlatch.Client) { w.hole.Store(true); w.reset() },
	"stopped answering": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.hole.Store(true)
	},
	"closed its connections": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.refuse.Store(true)
		w.reset()
	},
}

// eachDown plays with a lock whose Redis is away, in each way.
func eachDown(t *testing.T, timeout time.Duration, play func(t *testing.T, l *rlock.Lock)) {
	t.Helper()
	for name, away := range downs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, 0, redlatch.WithCommandTimeout(timeout))
				away(t, w, client)
				synctest.Wait()
				play(t, rlock.New(client, "job"))
			})
		})
	}
}

// awaitBroken returns when the client knows that its connection is gone. Before,
// a call may be written to it and so become uncertain at once.
func awaitBroken(t *testing.T, client *redlatch.Client) *redlatch.Client {
	t.Helper()
	l := rlock.New(client, redistest.Key(t))
	until(t, soon, "a refused connection", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := l.IsLocked(ctx)
		return errors.Is(err, redlatch.ErrNotSent)
	})
	return client
}

// requireTransportError checks that the error blames the connection to Redis
// and not another holder.
func requireTransportError(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain), "%v", err)
	require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NotErrorIs(t, err, redlatch.ErrLost)
	require.NotErrorIs(t, err, redlatch.ErrClosed)
}

func TestU9NothingIsAcquiredWhileRedisIsDown(t *testing.T) {
	eachDown(t, 1500*time.Millisecond, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, w := range []*waiter{
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(ctx) }),
			await(ctx, l),
			await(ctx, l, rlock.WithLease(forever)),
			await(ctx, l, rlock.WithWatchdog(forever)),
		} {
			err := w.failed(t, time.Second+time.Millisecond)
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

func TestU9NoQuestionIsAnsweredWhileRedisIsDown(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for name, ask := range map[string]func(ctx context.Context) error{
			"IsLocked":    func(ctx context.Context) error { _, err := l.IsLocked(ctx); return err },
			"IsHeldBy":    func(ctx context.Context) error { _, err := l.IsHeldBy(ctx, redlatch.Owner{}); return err },
			"HoldCount":   func(ctx context.Context) error { _, err := l.HoldCount(ctx, redlatch.Owner{}); return err },
			"TTL":         func(ctx context.Context) error { _, err := l.TTL(ctx); return err },
			"ForceUnlock": func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			began := time.Now()
			err := ask(ctx)
			cancel()
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, 200*time.Millisecond, time.Since(began))
		}
	})
}

func TestU35WaitEndsInTimeWithATransportErrorWhileRedisIsDown(t *testing.T) {
	eachDown(t, 6*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		w := await(t.Context(), l, rlock.WithWait(2*time.Second))
		requireTransportError(t, w.failed(t, 2*time.Second+time.Millisecond))
	})
}

func TestU35WithoutAnyBoundTheCommandTimeoutIsTheBound(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for _, w := range []*waiter{
			await(t.Context(), l), inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }),
		} {
			requireTransportError(t, w.failed(t, 2*time.Second+time.Millisecond))
		}
	})
}

// A waiter that once had a reply keeps waiting, and returns the transport error in the end.
func TestU35AWaiterSaysThatRedisWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, redlatch.WithPollCap(100*time.Millisecond))
		holdByHand(t, w.srv, "job", forever)
		waits := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(2*time.Second))
		time.Sleep(time.Second)
		w.refuse.Store(true)
		w.reset()
		requireTransportError(t, waits.failed(t, soon))
		require.Equal(t, 2*time.Second, waits.took)
	})
}

func TestU9OpenSaysThatRedisIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	for _, addr := range []string{"127.0.0.1:1", s.Addr()} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		client, err := redlatch.Open(ctx, "redis://"+addr)
		require.Nil(t, client)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, addr)
		require.Less(t, time.Since(began), time.Second+slack)
	}
}
