package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// downs are the ways in which Redis can be away. Each returns a client of it.
var downs = []struct {
	name   string
	client func(t *testing.T, opts ...redlatch.Option) *redlatch.Client
}{
	{"no subscriber", func(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
		t.Helper()
		p := redistest.NewProxy(t, "127.0.0.1:1")
		p.Refuse(true)
		return undialled(t, p.Addr(), opts...)
	}},
	{"killed", func(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
		t.Helper()
		s := redistest.Start(t)
		client := connect(t, s.URL(), opts...)
		loadScripts(t, client)
		s.Kill()
		return awaitBroken(t, client)
	}},
	{"frozen", func(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
		t.Helper()
		s := redistest.Start(t)
		client := connect(t, s.URL(), opts...)
		loadScripts(t, client)
		s.Pause()
		return client
	}},
	{"frozen before the first call", func(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
		t.Helper()
		s := redistest.Start(t)
		s.Pause()
		return undialled(t, s.Addr(), opts...)
	}},
	{"refuses the connection after it was made", func(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
		t.Helper()
		s := redistest.Start(t)
		p, client := through(t, s, opts...)
		p.Refuse(true)
		p.Reset()
		return awaitBroken(t, client)
	}},
}

// downLocks returns one lock for each way in which Redis can be away.
func downLocks(t *testing.T, opts ...redlatch.Option) []*rlock.Lock {
	t.Helper()
	var locks []*rlock.Lock
	var clients []*redlatch.Client
	for _, down := range downs {
		clients = append(clients, down.client(t, opts...))
		locks = append(locks, rlock.New(clients[len(clients)-1], down.name))
	}
	// Each waits a while for calls whose outcome is open: not one by one.
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, c := range clients {
			closing.Go(func() { _ = c.Close() }) // checked by the second Close
		}
		closing.Wait()
	})
	return locks
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

// undialled returns a client that has not connected yet.
func undialled(t *testing.T, addr string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr)
	}, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
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
	t.Parallel()
	const wait = time.Second
	var waiters []*waiter
	for _, l := range downLocks(t, redlatch.WithCommandTimeout(3*wait/2)) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		waiters = append(waiters,
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(ctx) }),
			await(ctx, l),
			await(ctx, l, rlock.WithLease(forever)),
			await(ctx, l, rlock.WithWatchdog(forever)),
		)
	}
	for _, w := range waiters {
		err := w.failed(t, wait+slack)
		requireTransportError(t, err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestU9NoQuestionIsAnsweredWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	for _, l := range downLocks(t, redlatch.WithCommandTimeout(2*time.Second)) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		for name, ask := range map[string]func() error{
			"IsLocked":    func() error { _, err := l.IsLocked(ctx); return err },
			"IsHeldBy":    func() error { _, err := l.IsHeldBy(ctx, redlatch.Owner{}); return err },
			"HoldCount":   func() error { _, err := l.HoldCount(ctx, redlatch.Owner{}); return err },
			"TTL":         func() error { _, err := l.TTL(ctx); return err },
			"ForceUnlock": func() error { _, err := l.ForceUnlock(ctx); return err },
		} {
			err := ask()
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
		}
		require.Less(t, time.Since(began), 200*time.Millisecond+slack)
	}
}

func TestU35WaitEndsInTimeWithATransportErrorWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	var waiters []*waiter
	for _, l := range downLocks(t, redlatch.WithCommandTimeout(3*wait)) { // which would end it too late
		waiters = append(waiters, await(t.Context(), l, rlock.WithWait(wait)))
	}
	for _, w := range waiters {
		requireTransportError(t, w.failed(t, wait+slack))
		require.LessOrEqual(t, w.took, wait+slack)
	}
}

func TestU35WithoutAnyBoundTheCommandTimeoutIsTheBound(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	var waiters []*waiter
	for _, l := range downLocks(t, redlatch.WithCommandTimeout(timeout)) {
		waiters = append(waiters,
			await(t.Context(), l),
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }))
	}
	for _, w := range waiters {
		requireTransportError(t, w.failed(t, timeout+slack))
		require.LessOrEqual(t, w.took, timeout+slack)
	}
}

// A waiter that had a reply once, that the lock is held, rides out what comes then,
// and says in the end why it got no answer.
func TestU35AWaiterSaysThatRedisWentAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s, redlatch.WithPollCap(100*time.Millisecond))
	key := redistest.Key(t)
	holdByHand(t, s, key, forever)
	w := await(t.Context(), rlock.New(client, key), rlock.WithWait(2*time.Second))
	awaitWaiters(t, s, key)
	p.Refuse(true)
	p.Reset()
	requireTransportError(t, w.failed(t, 2*time.Second+slack))
	require.GreaterOrEqual(t, w.took, 2*time.Second, "it did not ride it out")
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
