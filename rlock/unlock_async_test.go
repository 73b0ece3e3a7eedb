package rlock_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// farConn delivers what is written after a latency, without keeping the writer.
type farConn struct {
	net.Conn
	latency time.Duration
	parts   chan part
	once    sync.Once
	closed  chan struct{}
}

type part struct {
	data []byte
	due  time.Time
}

func (c *farConn) Write(p []byte) (int, error) {
	select {
	case c.parts <- part{bytes.Clone(p), time.Now().Add(c.latency)}:
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *farConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deliver ends with Close.
func (c *farConn) deliver() {
	for {
		select {
		case p := <-c.parts:
			select {
			case <-time.After(time.Until(p.due)):
			case <-c.closed:
				return
			}
			if _, err := c.Conn.Write(p.data); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

// far returns clients of one server in the process, all of them a round trip away from it.
func far(t *testing.T, trip time.Duration, n int, opts ...redlatch.Option) (*redistest.MiniServer, []*redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	clients := make([]*redlatch.Client, n)
	for i := range clients {
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			conn, err := srv.DialNet(ctx, "", "")
			if err != nil {
				return nil, err
			}
			c := &farConn{Conn: conn, latency: trip, parts: make(chan part, 1000), closed: make(chan struct{})}
			go c.deliver()
			return redis.NewConn(c, 0, 0), nil
		}, opts...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		hold, err := rlock.New(client, "warm-up").Lock(t.Context()) // loads the scripts
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		clients[i] = client
	}
	return srv, clients
}

// A pair of Lock and UnlockAsync costs one round trip, one of Lock and Unlock two.
func TestAPairWithUnlockAsyncCostsOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip, pairs = time.Millisecond, 20
		srv, clients := far(t, trip, 1)
		l := rlock.New(clients[0], "job")
		for _, c := range []struct {
			unlock func(*rlock.Hold) error
			took   time.Duration
		}{
			{(*rlock.Hold).Unlock, 2 * pairs * trip},
			{func(h *rlock.Hold) error { h.UnlockAsync(); return nil }, pairs * trip},
		} {
			synctest.Wait()
			began := time.Now()
			for range pairs {
				hold, err := l.Lock(t.Context())
				require.NoError(t, err)
				require.NoError(t, c.unlock(hold))
			}
			require.Equal(t, c.took, time.Since(began))
			time.Sleep(trip)
		}
		synctest.Wait()
		require.Zero(t, srv.Do(t, "EXISTS", l.Name()))
	})
}

func TestUnlockAsyncEndsTheHoldAtOnceAndTellsTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, clients := far(t, 100*time.Millisecond, 1)
		l := rlock.New(clients[0], "job")
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		ctx := hold.Context(t.Context())
		began := time.Now()
		outcome := hold.UnlockAsync()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
		require.NoError(t, <-outcome)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.NoError(t, <-hold.UnlockAsync(), "again")
		require.NoError(t, hold.Unlock())

		hold, err = l.Lock(t.Context())
		require.NoError(t, err)
		srv.Do(t, "DEL", l.Name())
		outcome = hold.UnlockAsync()
		var lost *redlatch.LockError
		require.ErrorAs(t, <-outcome, &lost)
		require.ErrorIs(t, lost, redlatch.ErrLost)
		require.Equal(t, "unlock", lost.Op)
		require.Same(t, lost, hold.Unlock())
	})
}

// Waiters of the process and of another one get the lock, whichever way it is given up, and
// an inner hold is given up alone.
func TestUnlockAsyncWakesWaitersAndKeepsOuterHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clients := far(t, 10*time.Millisecond, 2)
		own, other := rlock.New(clients[0], "job"), rlock.New(clients[1], "job")
		outer, err := own.Lock(t.Context())
		require.NoError(t, err)
		inner, err := own.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		near, distant := await(t.Context(), own), await(t.Context(), other)
		time.Sleep(time.Second) // they listen
		require.NoError(t, <-inner.UnlockAsync())
		require.NoError(t, outer.Err())
		count, err := other.HoldCount(t.Context(), outer.Owner())
		require.NoError(t, err)
		require.EqualValues(t, 1, count)

		outcome := outer.UnlockAsync()
		second := near.acquired(t, time.Second)
		require.NoError(t, <-outcome)
		outcome = second.UnlockAsync()
		third := distant.acquired(t, time.Second)
		require.NoError(t, <-outcome)
		require.NoError(t, <-third.UnlockAsync())
	})
}

// The client's Close waits for a release that is on its way.
func TestCloseWaitsForUnlockAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, clients := far(t, 100*time.Millisecond, 1)
		l := rlock.New(clients[0], "job")
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		outcome := hold.UnlockAsync()
		require.NoError(t, clients[0].Close())
		require.NoError(t, <-outcome)
		require.Zero(t, srv.Do(t, "EXISTS", l.Name()))

		hold, err = rlock.New(clients[0], "late").Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrClosed)
		require.Nil(t, hold)
	})
}

// Callers that go on at once exclude each other, on a real server and among processes.
func TestUnlockAsyncKeepsExclusion(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	key := redistest.Key(t)
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i := range 6 {
		l := rlock.New(connect(t, srv.URL()), key)
		wg.Go(func() {
			for range 50 {
				hold, err := l.Lock(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				assert.EqualValues(t, 1, inside.Add(1), i)
				inside.Add(-1)
				outcome := hold.UnlockAsync()
				if i%2 == 0 {
					assert.NoError(t, <-outcome)
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return srv.Do(t, "EXISTS", key) == int64(0) }, 5*time.Second, 10*time.Millisecond)
}
