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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// mute sends no message about releases: what the channel carries is the
// test's.
type mute struct {
	transport.Transport
	transport.Counter

	ctx    context.Context // of all that take the lock
	late   *atomic.Int64   // calls that were begun when it had ended
	bundle int             // so many messages make one event
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

// Subscribe is part of transport.Transport.
func (m mute) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	sub, err := m.Transport.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	b := &bundled{sub, make(chan transport.Event, 1), make(chan struct{}), sync.Once{}}
	go b.run(m.bundle)
	return b, nil
}

// bundled is a subscription whose listener comes to read only when several messages
// have come.
type bundled struct {
	transport.Subscription

	events chan transport.Event
	closed chan struct{}
	once   sync.Once
}

// Events is part of transport.Subscription.
func (b *bundled) Events() <-chan transport.Event { return b.events }

// Close is part of transport.Subscription.
func (b *bundled) Close() {
	b.once.Do(func() { close(b.closed) })
	b.Subscription.Close()
}

func (b *bundled) run(n int) {
	had := 0
	for {
		select {
		case e, works := <-b.Subscription.Events():
			if !works {
				close(b.events)
				return
			}
			if had += 1 + e.Coalesced; had < n {
				continue
			}
			e.Coalesced, had = had-1, 0
			select {
			case b.events <- e:
			default:
			}
		case <-b.closed:
			return
		}
	}
}

func muted(ctx context.Context, t *testing.T, srv *redistest.MiniServer, bundle int) (*redlatch.Client, *atomic.Int64) {
	t.Helper()
	tr := redigoTransport(srv)
	counter, ok := tr.(transport.Counter)
	require.True(t, ok)
	m := mute{tr, counter, ctx, &atomic.Int64{}, bundle}
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

// announce says n times, so many each millisecond, that the lock was freed, as if
// others had taken it.
func announce(t *testing.T, srv *redistest.MiniServer, name string, n, each int) {
	t.Helper()
	for i := range n {
		if i%each == 0 {
			time.Sleep(time.Millisecond) // fake
		}
		srv.Do(t, "PUBLISH", codec.LockChannel(name), codec.MessageUnlock)
	}
}

func TestEachOfTheOthersGetsAsManyTurns(t *testing.T) {
	for _, c := range []struct {
		name         string
		others       int
		milliseconds int
		turns        int   // of the others
		bundle       int   // of turns in a millisecond, which make one event
		least, most  int64 // turns here: as many as each of the others, and a burst now and then
	}{
		{"one other", 1, 320, 320, 1, 310, 500},
		{"four others", 4, 320, 320, 1, 75, 160},
		{"four others whose turns are reported together", 4, 320, 4 * 320, 4, 310, 500},
		{"one other that does not come in", 1, 40, 0, 1, 600, 1000},
		{"four others that do not come in", 4, 40, 0, 1, 600, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.others > 1 {
				testlevel.All(t, "2 s of a processor")
			}
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				// A little longer, so that nothing else happens when it ends.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.milliseconds)*time.Millisecond+time.Microsecond)
				defer cancel()
				client, late := muted(ctx, t, srv, c.bundle)
				l := rlock.New(client, "lock")
				for range c.others {
					listen(t, srv, l.Name())
				}
				var n atomic.Int64
				var wg sync.WaitGroup
				// So many that one always waits: a queue that is empty for a moment begins its
				// burst anew, as that of a single caller.
				for range 8 {
					wg.Go(func() {
						for ctx.Err() == nil && n.Load() <= c.most {
							if hold, err := l.Lock(ctx); err == nil {
								n.Add(1)
								_ = hold.Unlock()
							}
						}
					})
				}
				announce(t, srv, l.Name(), c.turns, c.bundle)
				wg.Wait()
				require.GreaterOrEqual(t, n.Load(), c.least)
				require.LessOrEqual(t, n.Load(), c.most)
				require.Zero(t, late.Load(), "a caller that leaves while others go first asks for nothing any more")
			})
		})
	}
}

// Another client that has not been met yet may free the lock once for many turns: it
// gets as much time as was taken here, not as many messages.
func TestYieldToUnseenRemoteContendersIsBoundByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		ctx, cancel := context.WithTimeout(t.Context(), 480*time.Millisecond+time.Microsecond)
		defer cancel()
		client, _ := muted(ctx, t, srv, 1)
		l := rlock.New(client, "lock")
		listen(t, srv, l.Name())
		var n atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if hold, err := l.Lock(ctx); err == nil {
						n.Add(1)
						time.Sleep(time.Millisecond)
						_ = hold.Unlock()
					}
				}
			})
		}
		for ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
			srv.Do(t, "PUBLISH", codec.LockChannel("lock"), codec.MessageUnlock)
		}
		wg.Wait()
		t.Logf("%d turns of 480", n.Load())
		require.Greater(t, n.Load(), int64(160), "half of the time, or a little less")
		require.Less(t, n.Load(), int64(300))
	})
}
