package rlock_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

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
	return inBackground(func() (*rlock.Hold, error) { return l.Lock(ctx, opts...) })
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

// checkHeld checks that another owner holds the lock.
func checkHeld(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, redlatch.ErrNotAcquired)
	assert.NotErrorIs(t, err, redlatch.ErrUncertain)
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

func over(t *testing.T, tr transport.Transport, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.NewWithTransport(tr, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
