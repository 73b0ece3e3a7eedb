package goredis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// named makes a transport to a cluster whose connections have a name.
func named(tb testing.TB, c *redistest.Cluster, name string) transport.Transport {
	tb.Helper()
	return over(tb, redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ClientName: name}))
}

func TestAThousandWaitersShareTwoSubscriptionConnectionsToEachNode(t *testing.T) {
	t.Parallel()
	locksuite.ManyWaiters(t, named)
}

func TestU44ManyHoldsAreRenewedInTimeByAsManyGoroutinesAsOne(t *testing.T) {
	locksuite.ManyHolds(t, func(tb testing.TB, c *redistest.Cluster) transport.Transport {
		tb.Helper()
		return named(tb, c, "")
	})
}

// BenchmarkCalls compares the transport with the client's own EvalSha, by 64 callers.
func BenchmarkCalls(b *testing.B) {
	server := redistest.Start(b)
	script := transport.NewScript("echo", "return ARGV[1]")
	b.Run("transport", func(b *testing.B) {
		tr := over(b, redis.NewClient(&redis.Options{Addr: server.Addr()}))
		defer func() { _ = tr.Close() }()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			came := make(chan error, 1)
			for pb.Next() {
				call := &transport.Call{Script: script, NumKeys: 1, Args: []any{"key", "value"}}
				tr.Start(call, func(_ any, err error) { came <- err })
				if err := <-came; err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("client", func(b *testing.B) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 64})
		defer func() { _ = client.Close() }()
		lua := redis.NewScript(script.Text())
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := lua.Run(b.Context(), client, []string{"key"}, "value").Err(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
