package rlock_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// roles are child processes, chosen by an environment variable with the server's address.
var roles = map[string]func(url string){}

func TestMain(m *testing.M) {
	for variable, play := range roles {
		if url := os.Getenv(variable); url != "" {
			play(url)
		}
	}
	redistest.Main(m)
}

// soon bounds waits on a real server.
const soon = 10 * time.Second

// noPoll makes a missed wake-up fail the test.
func noPoll() redlatch.Option { return redlatch.WithPollCap(30 * time.Second) }

// connect opens a client and closes it after the test.
func connect(t testing.TB, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func onShared(t testing.TB, opts ...redlatch.Option) (*redistest.Server, *redlatch.Client) {
	t.Helper()
	srv := redistest.Shared(t)
	return srv, connect(t, srv.URL(), opts...)
}

// inBubble starts a server and a client in a synctest bubble.
func inBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	return srv, fakeClient(t, srv, opts...)
}

func fakeClient(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(srv.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func overTransport(t *testing.T, tr transport.Transport) *redlatch.Client {
	t.Helper()
	c, err := redlatch.NewWithTransport(tr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// take acquires a free lock.
func take(t testing.TB, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.TryLock(t.Context(), opts...)
	require.NoError(t, err)
	return h
}

type waiter struct {
	done chan struct{}
	// Read after done is closed.
	hold *rlock.Hold
	err  error
	took time.Duration
}

func await(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) *waiter {
	w := &waiter{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(w.done)
		w.hold, w.err = l.Lock(ctx, opts...)
		w.took = time.Since(began)
	}()
	return w
}

// acquired returns the waiter's hold, which must arrive within d.
func (w *waiter) acquired(t testing.TB, d time.Duration) *rlock.Hold {
	t.Helper()
	w.ended(t, d)
	require.NoError(t, w.err)
	return w.hold
}

func (w *waiter) ended(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		require.FailNow(t, "still waiting", "after %v", d)
	}
}

// listening returns when all channels have subscribers.
func listening(t *testing.T, srv *redistest.Server, channels ...string) {
	t.Helper()
	until(t, soon, "no subscriber", func() bool {
		have := map[string]bool{}
		for _, c := range srv.Channels(t) {
			have[c] = true
		}
		for _, c := range channels {
			if !have[c] {
				return false
			}
		}
		return true
	})
}

// checkHeld checks that another owner holds the lock.
func checkHeld(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, redlatch.ErrNotAcquired)
	assert.NotErrorIs(t, err, redlatch.ErrUncertain)
}

func text(t testing.TB, srv redistest.Target, cmd string, args ...any) string {
	t.Helper()
	s, err := redis.String(srv.Do(t, cmd, args...), nil)
	require.NoError(t, err)
	return s
}

func redisInt(t testing.TB, srv redistest.Target, cmd string, args ...any) int64 {
	t.Helper()
	n, err := redis.Int64(srv.Do(t, cmd, args...), nil)
	require.NoError(t, err)
	return n
}

// redigoTransport is the built-in transport to a server in a bubble.
func redigoTransport(srv *redistest.MiniServer) transport.Transport {
	return redisconn.NewRedigo(redisconn.Config{
		Dial:        srv.Server.Dial,
		Command:     3 * time.Second,
		Lease:       30 * time.Second,
		DialTimeout: 5 * time.Second,
		Logger:      slog.New(slog.DiscardHandler),
	})
}
