package rlock_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// wire is a network to an in-memory server: slow, and a black hole if need be.
type wire struct {
	srv     *redistest.MiniServer
	latency time.Duration
	hole    atomic.Bool // what is sent is never heard of again
	refuse  atomic.Bool // connections are refused

	mu   sync.Mutex // guards sent
	sent time.Time  // when a script that got through was last sent
}

func (w *wire) dial(ctx context.Context) (redis.Conn, error) {
	if w.refuse.Load() {
		return nil, errors.New("connection refused")
	}
	c, err := w.srv.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return redis.NewConn(&wireConn{Conn: c, wire: w}, 0, 0), nil
}

func (w *wire) lastSent() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

type wireConn struct {
	net.Conn
	wire *wire
}

// Write takes the latency and then delivers, or does not.
func (c *wireConn) Write(p []byte) (int, error) {
	if c.wire.hole.Load() {
		return len(p), nil
	}
	if bytes.Contains(p, []byte("EVALSHA")) {
		c.wire.mu.Lock()
		c.wire.sent = time.Now()
		c.wire.mu.Unlock()
	}
	time.Sleep(c.wire.latency)
	return c.Conn.Write(p)
}

// wired starts a server and a client with a wire between them, in a bubble.
func wired(t *testing.T, latency time.Duration, opts ...redlatch.Option) (*wire, *redlatch.Client) {
	t.Helper()
	w := &wire{srv: redistest.Mini(t, embedded.WithInProcess()), latency: latency}
	client, err := redlatch.New(w.dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	_, err = rlock.New(client, "warm-up").IsLocked(t.Context())
	require.NoError(t, err)
	return w, client
}

// requireLossAt checks that the hold ends at the moment expected, and neither
// earlier nor later.
func requireLossAt(ctx context.Context, t *testing.T, hold *rlock.Hold, at time.Time) {
	t.Helper()
	time.Sleep(time.Until(at) - time.Millisecond)
	require.NoError(t, hold.Err())
	require.NoError(t, ctx.Err())
	require.NoError(t, context.Cause(ctx))
	require.Equal(t, time.Millisecond, hold.Remaining())
	<-ctx.Done()
	require.Zero(t, time.Since(at), "the moment of the loss")
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.Zero(t, hold.Remaining())
}

// Whatever keeps renewals from being acknowledged, the hold ends a lease, less
// the margin, after the last one that was: counted from when it was sent.
func TestU1U2HoldEndsALeaseLessTheMarginAfterTheLastAcknowledgedCall(t *testing.T) {
	const latency = 50 * time.Millisecond
	for name, cut := range map[string]func(*wire){
		"no answers":   func(w *wire) { w.hole.Store(true) },
		"errors":       func(w *wire) { w.srv.FailWith("LOADING Redis is loading the dataset in memory") },
		"disconnected": func(w *wire) { w.refuse.Store(true); w.srv.DropConnections() },
	} {
		for _, lease := range []time.Duration{3 * time.Second, 8 * time.Second, 30 * time.Second} {
			for _, tenths := range []int{5, 12, 19, 26} { // of a lease
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w, client := wired(t, latency)
						hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(lease))
						ctx := hold.Context(t.Context())
						time.Sleep(lease * time.Duration(tenths) / 10)
						synctest.Wait()
						require.NoError(t, hold.Err())
						cut(w)
						acknowledged := w.lastSent()
						margin := min(lease/10, time.Second)
						requireLossAt(ctx, t, hold, acknowledged.Add(lease-margin))
					})
				})
			}
		}
	}
}

func TestU1LeaseCountsFromTheSendingOfTheAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 800*time.Millisecond)
		began := time.Now()
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(30*time.Second))
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 800*time.Millisecond)
		require.Equal(t, 29*time.Second-took, hold.Remaining())
		require.GreaterOrEqual(t, ttl(t, w.srv, "job"), hold.Remaining()+time.Second)
		requireLossAt(hold.Context(t.Context()), t, hold, began.Add(29*time.Second))
	})
}

// The server still has the lock when the hold ends, so no other caller can
// have it.
func TestU2HoldEndsBeforeTheServerCanGiveTheLockAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 10*time.Millisecond)
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(2*time.Second))
		rival := await(t.Context(), rlock.New(fakeClient(t, w.srv), "job"))
		time.Sleep(5 * time.Second)
		w.hole.Store(true)
		<-hold.Context(t.Context()).Done()
		lost := time.Now()
		rival.stillWaits(t)
		require.Positive(t, ttl(t, w.srv, "job"))
		next := rival.acquired(t, soon)
		require.GreaterOrEqual(t, time.Since(lost), 200*time.Millisecond)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.NoError(t, next.Unlock())
	})
}

func TestU7OutageShorterThanTheLeaseCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		for range 20 {
			time.Sleep(time.Minute)
			w.hole.Store(true)
			time.Sleep(10 * time.Second)
			w.hole.Store(false)
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
			require.Greater(t, ttl(t, w.srv, "job"), 18*time.Second, "renewals have resumed")
		}
		require.NoError(t, hold.Unlock())
	})
}

func TestU43LockThatTheServerForgotIsLostWithinARenewalPeriod(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, srv *redistest.MiniServer, client *redlatch.Client){
		"deleted": func(t *testing.T, srv *redistest.MiniServer, _ *redlatch.Client) {
			t.Helper()
			srv.Do(t, "DEL", "job")
		},
		"flushed": func(t *testing.T, srv *redistest.MiniServer, _ *redlatch.Client) {
			t.Helper()
			srv.Do(t, "FLUSHALL")
		},
		"forced": func(t *testing.T, _ *redistest.MiniServer, client *redlatch.Client) {
			t.Helper()
			forced, err := rlock.New(client, "job").ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		"overwritten": func(t *testing.T, srv *redistest.MiniServer, _ *redlatch.Client) {
			t.Helper()
			srv.Do(t, "SET", "job", "something else")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t)
				hold := holdFor(t, rlock.New(client, "job"), 17*time.Second)
				began := time.Now()
				take(t, srv, client)
				<-hold.Context(t.Context()).Done()
				require.LessOrEqual(t, time.Since(began), 10*time.Second)
				require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
			})
		})
	}
}

func holdFor(t *testing.T, l *rlock.Lock, d time.Duration) *rlock.Hold {
	t.Helper()
	hold := take(t, l)
	time.Sleep(d)
	require.NoError(t, hold.Err())
	return hold
}

func TestU10LostHoldTouchesNothingOfItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		holdByHand(t, srv, "job", time.Hour)
		ctx := hold.Context(t.Context())
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld, "given up, as far as the holder knew")
		time.Sleep(time.Minute)
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, srv, "job"))
		require.Equal(t, time.Hour-time.Minute, ttl(t, srv, "job"))
	})
}
