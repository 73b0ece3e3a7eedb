package redisconn_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// counting returns a transport to master. It connects to the address via instead of the replica at
// addr.
func counting(t *testing.T, master *redistest.Server, addr, via string) *redisconn.Redigo {
	t.Helper()
	r := redisconn.NewRedigo(redisconn.Config{
		Dial: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", master.Addr()) },
		DialReplica: func(ctx context.Context, at string) (redis.Conn, error) {
			if at != addr {
				return nil, net.UnknownNetworkError(at)
			}
			return redis.DialContext(ctx, "tcp", via)
		},
		Command:     time.Minute,
		DialTimeout: time.Minute,
		ClientName:  "counting",
	})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// listenOn subscribes to channels until the test ends.
func listenOn(t *testing.T, server *redistest.Server, channels ...any) {
	t.Helper()
	sub := redis.PubSubConn{Conn: server.Dial(t)}
	require.NoError(t, sub.Subscribe(channels...))
	for range channels {
		require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(time.Minute))
	}
}

func TestListenersOnEveryNodeAreCounted(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	listenOn(t, master, "everywhere", "on the master")
	listenOn(t, replica, "everywhere", "on the replica")
	r := counting(t, master, replica.Addr(), replica.Addr())
	counts, err := r.Listeners(t.Context(), "on the replica", "everywhere", "nowhere", "on the master")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 0, 1}, counts)
	clients, err := redis.String(replica.Do(t, "CLIENT", "LIST"), nil)
	require.NoError(t, err)
	require.Contains(t, clients, " name=counting ")
}

func TestCloseInterruptsReplicaCount(t *testing.T) {
	noGoroutinesLeft(t)
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	proxy := redistest.NewProxy(t, replica.Addr())
	r := counting(t, master, replica.Addr(), proxy.Addr())
	held := proxy.HoldMatching(redistest.ToServer, "NUMSUB")
	counted := make(chan error, 1)
	go func() {
		_, err := r.Listeners(t.Context(), "somebody")
		counted <- err
	}()
	<-held.Seen()
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-counted, transport.ErrClosed)
	_, err := r.Listeners(t.Context(), "somebody")
	require.ErrorIs(t, err, transport.ErrClosed)
}
