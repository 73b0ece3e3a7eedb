package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// mute tells nobody about releases: what the channel carries is the test's.
type mute struct {
	transport.Transport
	transport.Counter

	ctx  context.Context // of all that take the lock
	late *atomic.Int64   // calls that were begun when it had ended
}

// Start is part of transport.Transport.
func (m mute) Start(call *transport.Call, done transport.Done) {
	if m.ctx.Err() != nil {
		m.late.Add(1)
	}
	m.Transport.Start(call, done)
}

// PublishCommand returns a command that takes a channel and a message, and does
// nothing.
func (mute) PublishCommand() string { return "EXISTS" }

func muted(ctx context.Context, t *testing.T, srv *redistest.MiniServer) (*redlatch.Client, *atomic.Int64) {
	t.Helper()
	tr := redigoTransport(srv)
	counter, ok := tr.(transport.Counter)
	require.True(t, ok)
	m := mute{tr, counter, ctx, &atomic.Int64{}}
	client, err := redlatch.NewWithTransport(m)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client, m.late
}

// listen listens to a lock's channel until the test ends, and does nothing else.
func listen(t *testing.T, srv *redistest.MiniServer, name string) {
	t.Helper()
	conn := redis.PubSubConn{Conn: srv.Dial(t)}
	require.NoError(t, conn.Subscribe(codec.LockChannel(name)))
	_, ok := conn.Receive().(redis.Subscription)
	require.True(t, ok)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, failed := conn.Receive().(error); failed {
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close() // ends the loop
		wg.Wait()
	})
}

// announce says n times, once a millisecond, that the lock was freed, as if others
// had taken it.
func announce(t *testing.T, srv *redistest.MiniServer, name string, n int) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond) // fake
		srv.Do(t, "PUBLISH", codec.LockChannel(name), codec.MessageUnlock)
	}
}

func TestEachOfTheOthersGetsAsManyTurns(t *testing.T) {
	for _, c := range []struct {
		name         string
		others       int
		milliseconds int
		turns        int   // of the others
		least, most  int64 // turns here: as many as each of the others, and a burst now and then
	}{
		{"one other", 1, 320, 320, 310, 500},
		{"four others", 4, 320, 320, 75, 160},
		{"one other that does not come in", 1, 40, 0, 600, 1000},
		{"four others that do not come in", 4, 40, 0, 600, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				// A little longer, so that nothing else happens when it ends.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.milliseconds)*time.Millisecond+time.Microsecond)
				defer cancel()
				client, late := muted(ctx, t, srv)
				l := rlock.New(client, "lock")
				for range c.others {
					listen(t, srv, l.Name())
				}
				var n atomic.Int64
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						for ctx.Err() == nil && n.Load() <= c.most {
							if hold, err := l.Lock(ctx); err == nil {
								n.Add(1)
								_ = hold.Unlock()
							}
						}
					})
				}
				announce(t, srv, l.Name(), c.turns)
				wg.Wait()
				require.GreaterOrEqual(t, n.Load(), c.least)
				require.LessOrEqual(t, n.Load(), c.most)
				require.Zero(t, late.Load(), "who leaves while others go first asks for nothing any more")
			})
		})
	}
}
