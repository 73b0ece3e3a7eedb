package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// mute suppresses unlock messages; the test publishes its own.
type mute struct {
	transport.Transport
	transport.Counter

	ctx  context.Context // of all callers that take the lock
	late *atomic.Int64   // calls started after it had ended
}

func (m mute) Start(call *transport.Call, done transport.Done) {
	if m.ctx.Err() != nil {
		m.late.Add(1)
	}
	m.Transport.Start(call, done)
}

// EXISTS takes the same arguments and does nothing.
func (mute) PublishCommand() string { return "EXISTS" }

func muted(ctx context.Context, t *testing.T, srv *redistest.MiniServer) (*redlatch.Client, *atomic.Int64) {
	t.Helper()
	tr := redigoTransport(srv)
	counter, ok := tr.(transport.Counter)
	require.True(t, ok)
	m := mute{tr, counter, ctx, &atomic.Int64{}}
	return over(t, m), m.late
}

// listen subscribes to a lock's channel until the test ends.
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

func TestContendersShareTurnsEqually(t *testing.T) {
	for name, c := range map[string]struct {
		milliseconds int
		turns        int // by the other, each taking a millisecond
		least, most  int // turns here: as many as the other takes, and a burst now and then
	}{
		"one other":                     {64, 64, 59, 100},
		"one other that never acquires": {6, 0, 90, 150},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				// Nothing else happens at this time.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.milliseconds)*time.Millisecond+time.Microsecond)
				defer cancel()
				client, late := muted(ctx, t, srv)
				l := rlock.New(client, "lock")
				listen(t, srv, l.Name())
				holds := make(chan *rlock.Hold, 3)
				var wg sync.WaitGroup
				ask := func() {
					wg.Go(func() {
						if hold, err := l.Lock(ctx); err == nil {
							holds <- hold
						}
					})
				}
				for range cap(holds) {
					ask()
				}
				wg.Go(func() {
					for range c.turns {
						time.Sleep(time.Millisecond)
						srv.Do(t, "PUBLISH", codec.LockChannel("lock"), protocol.MessageUnlock)
					}
				})
				n := 0
				for ctx.Err() == nil && n <= c.most {
					select {
					case hold := <-holds:
						n++
						ask()
						synctest.Wait() // an empty queue would restart its burst
						_ = hold.Unlock()
					case <-ctx.Done():
					}
				}
				cancel()
				wg.Wait()
				require.GreaterOrEqual(t, n, c.least)
				require.LessOrEqual(t, n, c.most)
				require.Zero(t, late.Load(), "a canceled caller sends nothing")
			})
		})
	}
}

// It yields for as long as it held the lock, not for a number of messages.
func TestYieldToRemoteContendersIsTimeLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		ctx, cancel := context.WithTimeout(t.Context(), 160*time.Millisecond+time.Microsecond)
		defer cancel()
		client, _ := muted(ctx, t, srv)
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
			srv.Do(t, "PUBLISH", codec.LockChannel("lock"), protocol.MessageUnlock)
		}
		wg.Wait()
		t.Logf("%d turns of 160", n.Load())
		require.Greater(t, n.Load(), int64(53), "half of the time, or a little less")
		require.Less(t, n.Load(), int64(100))
	})
}

// noPubSub runs calls, but it neither confirms subscriptions nor counts subscribers.
type noPubSub struct {
	transport.Transport
	subscribes atomic.Int64
}

func (n *noPubSub) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	n.subscribes.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestYieldsWithoutPubSubAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &noPubSub{Transport: redigoTransport(redistest.Mini(t, embedded.WithInProcess()))}
		client := over(t, tr, redlatch.WithPollCap(forever))
		loadScripts(t, client)
		l := rlock.New(client, "lock")
		waiters := func(n int) (took time.Duration) {
			t.Helper()
			var wg sync.WaitGroup
			began := time.Now()
			for range n {
				wg.Go(func() {
					hold, err := l.Lock(t.Context())
					if assert.NoError(t, err) {
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			wg.Wait()
			return time.Since(began)
		}
		first := take(t, l)
		time.AfterFunc(time.Millisecond, func() { _ = first.Unlock() })
		require.Less(t, waiters(200), time.Second)
		require.EqualValues(t, 1, tr.subscribes.Load())
	})
}

func TestYieldingCallerReturnsErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		l := rlock.New(client, "job")
		hold := take(t, l)
		next := await(t.Context(), l, rlock.WithPolling(time.Second))
		synctest.Wait()
		w := await(t.Context(), l, rlock.WithPolling(time.Second))
		synctest.Wait()
		require.NoError(t, hold.Unlock())
		hold = next.acquired(t, soon)
		time.Sleep(time.Second) // longer than a burst
		require.NoError(t, hold.Unlock())
		time.Sleep(time.Millisecond)
		w.stillWaits(t)
		require.NoError(t, client.Close())
		w.ended(t, time.Minute)
		require.ErrorIs(t, w.err, redlatch.ErrClosed)
		require.NotErrorIs(t, w.err, redlatch.ErrNotAcquired)
	})
}

func TestPollCapAppliesToEachKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t, redlatch.WithPollCap(100*time.Millisecond))
		holdByHand(t, srv, "plain", time.Hour)
		holdByHand(t, srv, "fair", time.Hour)
		srv.Do(t, "HSET", "rw", "mode", "write", foreignOwner+":write", 1)
		srv.Do(t, "PEXPIRE", "rw", time.Hour.Milliseconds())
		plain := await(t.Context(), rlock.New(client, "plain"))
		fair := await(t.Context(), rfairlock.New(client, "fair"))
		reader := await(t.Context(), rreadwritelock.New(client, "rw").Read())
		time.Sleep(5 * time.Second)
		srv.Do(t, "DEL", "plain", "fair", "rw")
		began := time.Now()
		for _, w := range []*waiter{plain, fair, reader} {
			require.NoError(t, w.acquired(t, time.Minute).Unlock())
		}
		require.LessOrEqual(t, time.Since(began), 400*time.Millisecond) // a following reader polls less often
	})
}

func TestPollingCallerDoesNotSubscribe(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	here, there := connect(t, srv.URL()), connect(t, srv.URL())
	l := rlock.New(here, redistest.Key(t))
	held := take(t, rlock.New(there, l.Name()))
	polls := rlock.WithPolling(20 * time.Millisecond)
	w := await(t.Context(), l, polls)
	multi := make(chan error, 1)
	go func() {
		multi <- rmultilock.New(here, l.Name(), "other").Do(t.Context(), func(context.Context) error { return nil }, polls)
	}()
	before := srv.CommandStats(t)["evalsha"]
	until(t, soon, "it does not poll", func() bool { return srv.CommandStats(t)["evalsha"] >= before+10 })
	require.Empty(t, srv.Channels(t))
	require.NoError(t, held.Unlock())
	hold := w.acquired(t, soon)

	// Its release wakes subscribers.
	far := await(t.Context(), rlock.New(connect(t, srv.URL(), noPoll()), l.Name()))
	until(t, soon, "a subscription", func() bool { return len(srv.Channels(t)) > 0 })
	require.NoError(t, hold.Unlock())
	require.NoError(t, far.acquired(t, soon).Unlock())
	require.NoError(t, <-multi)
	require.Zero(t, srv.CommandStats(t)["pubsub|numsub"], "nobody to count")
}

func TestInvalidPollCapRejected(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	client := over(t, tr)
	polls := rlock.WithPolling(time.Second)
	for _, fair := range []*rlock.Lock{
		rfairlock.New(client, "job"), rreadwritelock.New(client, "job").Read(), rreadwritelock.New(client, "job").Write(),
	} {
		_, err := fair.Lock(t.Context(), polls)
		requireOnly(t, err, "lock", "job", redlatch.ErrInvalid)
	}
	require.Zero(t, tr.sent())
}

// A client with a single caller frees the lock after each turn.
func TestClientsShareContendedLock(t *testing.T) {
	for name, callers := range map[string][]int{"many callers each": {16, 16, 16}, "one caller in one": {16, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first := wired(t, time.Millisecond)
				loadScripts(t, first)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				turns, total := make([]int, len(callers)), 0 // guarded by the lock
				var wg sync.WaitGroup
				for i, n := range callers {
					l := rlock.New(w.client(t), "lock")
					for range n {
						wg.Go(func() {
							for ctx.Err() == nil {
								if hold, err := l.Lock(ctx); err == nil {
									turns[i]++
									total++
									assert.NoError(t, hold.Unlock())
								}
							}
						})
					}
				}
				wg.Wait()
				for _, n := range turns {
					require.GreaterOrEqual(t, float64(n)/float64(total), 0.14, "%v of %d", turns, total)
				}
			})
		})
	}
}

func TestLostHoldsCountAsTurns(t *testing.T) {
	for name, lock := range map[string]func(c *redlatch.Client) *rlock.Lock{
		"plain": func(c *redlatch.Client) *rlock.Lock { return rlock.New(c, "lock") },
		"write": func(c *redlatch.Client) *rlock.Lock { return rreadwritelock.New(c, "lock").Write() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, here := inBubble(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				there := over(t, redigoTransport(srv))
				var turns [2]atomic.Int64
				var wg sync.WaitGroup
				for i, client := range []*redlatch.Client{there, here, here, here, here} {
					wg.Go(func() {
						for ctx.Err() == nil {
							if hold, err := lock(client).Lock(ctx, rlock.WithLease(time.Second)); err == nil {
								turns[min(i, 1)].Add(1)
								<-hold.Context(ctx).Done()
								time.Sleep(10 * time.Millisecond) // the work ends late
							}
						}
					})
				}
				wg.Wait()
				a, b := turns[0].Load(), turns[1].Load()
				require.GreaterOrEqual(t, 100*a/(a+b), int64(25), "%d and %d turns", a, b)
			})
		})
	}
}
