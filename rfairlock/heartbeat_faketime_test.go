package rfairlock_test

import (
	"context"
	"log/slog"
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
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// host is a transport of a machine whose clock is off, to an in-memory server with
// no replicas. That one does not know ROLE, so the transport counts by itself.
type host struct {
	*elsewhen
	srv *redistest.MiniServer
}

// Listeners is part of transport.Counter.
func (h *host) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	c, err := h.srv.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // the answer is there or it is not
	reply, err := redis.Values(c.Do("PUBSUB", redis.Args{}.Add("NUMSUB").AddFlat(channels)...))
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(channels))
	for i := range counts {
		if counts[i], err = redis.Int64(reply[2*i+1], nil); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// hostOf opens a client of a machine to whose clock the server's is ahead.
func hostOf(t *testing.T, srv *redistest.MiniServer, ahead time.Duration, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	e := &elsewhen{ahead: ahead, Transport: redisconn.NewRedigo(redisconn.Config{
		Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
		DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})}
	client, err := redlatch.NewWithTransport(&host{e, srv}, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// listensByHand subscribes to the owner's channel, as a live waiter does.
func listensByHand(t *testing.T, srv *redistest.MiniServer, owner string) {
	t.Helper()
	require.NoError(t, redis.PubSubConn{Conn: srv.Dial(t)}.Subscribe(codec.OwnerChannel("job", owner)))
}

// oneByOne makes some wait for the lock, of one client after the other.
func oneByOne(ctx context.Context, n int, clients ...*redlatch.Client) []*waiter {
	var all []*waiter
	for i := range n {
		all = append(all, await(ctx, rfairlock.New(clients[i%len(clients)], "job")))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
	}
	return all
}

// An attempt removes waiters whose deadline has come. The holder's lease is short
// and renewed, so deadlines come while their owners live.
func TestU25WaitersOfALongHoldKeepTheirPlaces(t *testing.T) {
	for _, processes := range []int{1, 2} { // two keep each other's, too
		synctest.Test(t, func(t *testing.T) {
			ev := &evictions{}
			srv := redistest.Mini(t, embedded.WithInProcess())
			var clients []*redlatch.Client
			for range processes {
				clients = append(clients, hostOf(t, srv, 0, redlatch.WithObserver(ev.observer())))
			}
			hold, err := rfairlock.New(clients[0], "job").TryLock(t.Context())
			require.NoError(t, err)
			all := oneByOne(t.Context(), 6, clients...)
			before := queueOf(t, srv, "job")
			require.Len(t, before, 6)
			for range testlevel.Rounds(7, 20) {
				time.Sleep(time.Minute)
				require.Equal(t, before, queueOf(t, srv, "job"))
			}
			require.NoError(t, hold.Unlock())
			for i, w := range all {
				<-w.done
				require.NoError(t, w.err)
				require.Equal(t, before[i], w.hold.Owner().String())
				require.NoError(t, w.hold.Unlock())
			}
			require.Empty(t, ev.reported())
		})
	}
}

// The first is a foreign waiter whose deadline would come soon, the last one could be
// hours late.
func TestU23HeartbeatsOfHostsWhoseClocksAreOffKeepEveryWaiterQueued(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			ev := &evictions{}
			srv := redistest.Mini(t, embedded.WithInProcess())
			a := hostOf(t, srv, ahead, redlatch.WithServerTime(), redlatch.WithObserver(ev.observer()))
			b := hostOf(t, srv, ahead, redlatch.WithServerTime(), redlatch.WithObserver(ev.observer()))
			holdByHand(t, srv, "job", time.Hour)
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(ahead+time.Minute))
			listensByHand(t, srv, foreignHead)
			ctx, cancel := context.WithCancel(t.Context())
			all := oneByOne(ctx, 4, a, b)
			queueByHand(t, srv, "job", foreignTail, time.Now().Add(ahead+30*time.Minute))
			listensByHand(t, srv, foreignTail)
			before := queueOf(t, srv, "job")
			require.Len(t, before, 6)
			for range testlevel.Rounds(7, 10) {
				time.Sleep(time.Minute)
				require.Equal(t, before, queueOf(t, srv, "job"))
				for owner, deadline := range deadlinesOf(t, srv, "job") {
					left := time.UnixMilli(deadline).Sub(time.Now().Add(ahead))
					require.Positive(t, left, owner)
					require.Less(t, left, time.Hour+7*300*time.Second, owner)
				}
			}
			require.Empty(t, ev.reported())
			cancel()
			for _, w := range all {
				<-w.done
			}
		})
	}
}

// One machine's clock is off, and no client uses the server's clock.
func TestU23ClocksThatAreOffCostAWarningAndNeverExclusion(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			logged, log := newJournal()
			srv := redistest.Mini(t, embedded.WithInProcess())
			off, right := hostOf(t, srv, ahead, log), hostOf(t, srv, ahead, redlatch.WithServerTime())
			var inside, turns atomic.Int32
			var wg sync.WaitGroup
			over := time.Now().Add(time.Duration(testlevel.Rounds(2, 6)) * time.Minute)
			for i := range 6 {
				l := rfairlock.New([]*redlatch.Client{off, right}[i%2], "job")
				wg.Go(func() {
					for time.Now().Before(over) {
						hold, err := l.Lock(t.Context(), rlock.WithLease(time.Minute))
						if !assert.NoError(t, err) {
							return
						}
						assert.Equal(t, int32(1), inside.Add(1))
						time.Sleep(3 * time.Second)
						inside.Add(-1)
						turns.Add(1)
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			wg.Wait()
			require.Greater(t, turns.Load(), int32(20))
			require.Equal(t, 1, logged.count("clock and the server's are apart"))
		})
	}
}

// As where turns are short: a worker that comes to a free lock has never heard the dead one
// before it. This is how long that stands still.
func TestU13DeadWaiterOfRedissonThatWasNeverSubscribedIsEvictedIn30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := &evictions{}
		srv := redistest.Mini(t, embedded.WithInProcess())
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
		began := time.Now()
		hold, err := rfairlock.New(hostOf(t, srv, 0, redlatch.WithObserver(ev.observer())), "job").Lock(t.Context())
		require.NoError(t, err)
		took, grace := time.Since(began), 30*time.Second
		require.GreaterOrEqual(t, took, grace)
		require.LessOrEqual(t, took, grace+2*time.Second)
		require.NoError(t, hold.Unlock())
		synctest.Wait() // the message of the eviction may be sooner than its report
		require.Len(t, ev.reported(), 1)
	})
}
