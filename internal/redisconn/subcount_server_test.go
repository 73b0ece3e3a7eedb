package redisconn_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

const (
	countPatience = 3 * time.Second
	late          = 20 * time.Second
	dialPatience  = time.Minute
)

// counting returns a transport that can count.
func counting(t *testing.T, server *redistest.Server, change ...func(*redisconn.Config)) *redisconn.Redigo {
	t.Helper()
	cfg := redisconn.Config{
		Dial: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", server.Addr()) },
		DialReplica: func(ctx context.Context, addr string) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr)
		},
		Command:     countPatience,
		Lease:       30 * time.Second,
		DialTimeout: dialPatience,
		ClientName:  "counting",
	}
	for _, f := range change {
		f(&cfg)
	}
	r := redisconn.NewRedigo(cfg)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// listenOn subscribes to channels until the test ends.
func listenOn(t *testing.T, server *redistest.Server, channels ...any) {
	t.Helper()
	sub := redis.PubSubConn{Conn: server.Dial(t)}
	require.NoError(t, sub.Subscribe(channels...))
	for range channels {
		require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(late))
	}
}

// requireCounts counts until the numbers are right.
func requireCounts(t *testing.T, r *redisconn.Redigo, want []int64, channels ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		counts, err := r.Listeners(t.Context(), channels...)
		return err == nil && equal(want, counts)
	}, late, 20*time.Millisecond, "%v", want)
}

func equal(a, b []int64) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return true
}

// requireUnknown requires that a count fails in time.
func requireUnknown(t *testing.T, r *redisconn.Redigo, because string) error {
	t.Helper()
	began := time.Now()
	counts, err := r.Listeners(t.Context(), "somebody")
	require.Error(t, err)
	require.Nil(t, counts)
	require.ErrorContains(t, err, because)
	require.Less(t, time.Since(began), countPatience+late)
	return err
}

// expireList makes the next count ask for the replicas.
func expireList(t *testing.T, r *redisconn.Redigo, master *redistest.Server) {
	t.Helper()
	next := r.Reconnected()
	master.KillClients(t, "normal")
	require.Eventually(t, func() bool {
		_, _ = mux.Do(t.Context(), r, &transport.Call{Command: "PING"}) // makes it connect
		select {
		case <-next:
			return true
		default:
			return false
		}
	}, late, time.Millisecond)
}

func TestListenersOnEveryNodeAreCounted(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	alone := counting(t, master)
	listenOn(t, master, "everywhere", "on the master")
	requireCounts(t, alone, []int64{1, 1, 0}, "everywhere", "on the master", "nowhere")

	one := redistest.StartReplica(t, master)
	listenOn(t, one, "everywhere", "on a replica")
	r := counting(t, master)
	counts, err := r.Listeners(t.Context(), "on a replica", "everywhere", "nowhere", "on the master")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 0, 1}, counts)

	two := redistest.StartReplica(t, master)
	listenOn(t, two, "everywhere")
	listenOn(t, two, "on a replica", "everywhere")
	counts, err = counting(t, master).Listeners(t.Context(), "on a replica", "everywhere", "nowhere", "on the master")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 4, 0, 1}, counts)

	expireList(t, r, master)
	counts, err = r.Listeners(t.Context(), "on a replica", "everywhere")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 4}, counts, "the new replica is seen after a reconnect")
	clients, err := redis.String(two.Do(t, "CLIENT", "LIST"), nil)
	require.NoError(t, err)
	require.Contains(t, clients, " name=counting ")
}

func TestReplicaThatIsGoneIsAnErrorUntilTheMasterNoLongerShowsIt(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	one, two := redistest.StartReplica(t, master), redistest.StartReplica(t, master)
	listenOn(t, one, "somebody")
	listenOn(t, two, "somebody")
	r := counting(t, master)
	requireCounts(t, r, []int64{2}, "somebody")

	two.Kill()
	require.Eventually(t, func() bool { return len(master.Replicas(t)) == 1 }, late, 5*time.Millisecond)
	requireUnknown(t, r, "replica "+two.Addr())
	expireList(t, r, master)
	requireCounts(t, r, []int64{1}, "somebody")

	two.Restart()
	require.Eventually(t, func() bool { return len(master.Replicas(t)) == 2 }, late, 5*time.Millisecond)
	listenOn(t, two, "somebody")
	expireList(t, r, master)
	requireCounts(t, r, []int64{2}, "somebody")

	one.Do(t, "REPLICAOF", "NO", "ONE")
	require.Eventually(t, func() bool { return len(master.Replicas(t)) == 1 }, late, 5*time.Millisecond)
	expireList(t, r, master)
	requireCounts(t, r, []int64{1}, "somebody")
}

func TestCloseEndsTheCountThatIsUnderWayOnAReplica(t *testing.T) {
	noGoroutinesLeft(t)
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	proxy := redistest.NewProxy(t, replica.Addr())
	r := counting(t, master, func(cfg *redisconn.Config) {
		cfg.Command = time.Minute
		cfg.DialReplica = func(ctx context.Context, addr string) (redis.Conn, error) {
			if addr != replica.Addr() {
				return nil, net.UnknownNetworkError(addr)
			}
			return redis.DialContext(ctx, "tcp", proxy.Addr())
		}
	})
	requireCounts(t, r, []int64{0}, "somebody")
	held := proxy.HoldMatching(redistest.ToServer, "NUMSUB")
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = r.Listeners(t.Context(), "somebody") })
	<-held.Seen()
	began := time.Now()
	require.NoError(t, r.Close())
	wg.Wait()
	require.ErrorIs(t, err, transport.ErrClosed)
	require.Less(t, time.Since(began), late)
	_, err = r.Listeners(t.Context(), "somebody")
	require.ErrorIs(t, err, transport.ErrClosed)
}
