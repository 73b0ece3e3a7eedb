package goredis

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// connections returns how many connections of a kind, "normal" or "pubsub", have been
// given a name, on each node.
func connections(t *testing.T, c *redistest.Cluster, kind, name string) []int {
	t.Helper()
	var counts []int
	for _, s := range c.Nodes() {
		list, isText := s.Do(t, "CLIENT", "LIST", "TYPE", kind).([]byte)
		require.True(t, isText)
		counts = append(counts, strings.Count(string(list), " name="+name+" "))
	}
	return counts
}

func TestAThousandWaitersShareTwoSubscriptionConnectionsToEachNode(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	c := redistest.StartCluster(t, 3, 1)
	name := redistest.Key(t)
	holders := clustered(c, nil).Client(t)
	client, err := redlatch.NewWithTransport(over(t,
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ClientName: name})))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	holds := make([]*rlock.Hold, waiters)
	took := make([]error, waiters)
	var wg sync.WaitGroup
	each(waiters, func(i int) { holds[i], took[i] = rlock.New(holders, fmt.Sprintf("%s-%d", name, i)).Lock(ctx) })
	for i := range waiters {
		require.NoError(t, took[i])
		wg.Go(func() {
			hold, err := rlock.New(client, fmt.Sprintf("%s-%d", name, i)).Lock(ctx)
			if err == nil {
				err = hold.Unlock()
			}
			took[i] = err
		})
	}
	require.Eventually(t, func() bool {
		var channels int64
		for _, s := range c.Nodes() {
			names, _ := s.Do(t, "PUBSUB", "SHARDCHANNELS", "redisson_lock__channel:{"+name+"-*").([]any)
			channels += int64(len(names))
		}
		return channels == waiters
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, []int{2, 2, 2, 0, 0, 0}, connections(t, c, "pubsub", name))
	for _, n := range connections(t, c, "normal", name) {
		require.LessOrEqual(t, n, 1) // replicas are asked who is master when masters are slow to say
	}
	each(waiters, func(i int) { assert.NoError(t, holds[i].Unlock()) })
	wg.Wait()
	for _, err := range took {
		require.NoError(t, err)
	}
	require.NoError(t, client.Close())
}

// Held locks are renewed in batches, one for each slot; REDLATCH_OVERLOAD=full makes
// them 50,000.
func TestManyHoldsAreRenewedInTimeByAsManyGoroutinesAsOne(t *testing.T) {
	many, lease := 3000, 6*time.Second
	if os.Getenv("REDLATCH_OVERLOAD") == "full" {
		many, lease = 50_000, 30*time.Second
	} else {
		t.Parallel()
	}
	c := redistest.StartCluster(t, 3, 0)
	seen := &renewals{}
	client, err := redlatch.NewWithTransport(
		over(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})),
		redlatch.WithWatchdogTimeout(lease), redlatch.WithObserver(seen))
	require.NoError(t, err)
	name := redistest.Key(t)
	holds := make([]*rlock.Hold, many)
	holds[0], err = rlock.New(client, name).Lock(t.Context())
	require.NoError(t, err)
	goroutines := runtime.NumGoroutine()
	each(many, func(i int) {
		if i > 0 {
			hold, err := rlock.New(client, fmt.Sprintf("%s-%d", name, i)).Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			holds[i] = hold
		}
	})
	if os.Getenv("REDLATCH_OVERLOAD") == "full" { // no other test is there to have some of its own
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+10)
	}
	time.Sleep(lease)
	for _, h := range holds {
		require.NoError(t, h.Err())
	}
	holdsRenewed, slowest := seen.sum()
	t.Logf("%d holds, %d renewals, the slowest script took %v", many, holdsRenewed, slowest.Round(time.Millisecond))
	require.Less(t, slowest, lease/3/2)
	require.GreaterOrEqual(t, holdsRenewed, many)
	each(many, func(i int) {
		if err := holds[i].Unlock(); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, client.Close())
}

// renewals is an observer of them.
type renewals struct {
	mu      sync.Mutex // guards what follows
	holds   int
	slowest time.Duration
}

// Observe is part of redlatch.Observer.
func (r *renewals) Observe(e redlatch.Event) {
	if renewed, is := e.(redlatch.Renewed); is {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.holds += renewed.Holds
		r.slowest = max(r.slowest, renewed.Took)
	}
}

func (r *renewals) sum() (holds int, slowest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds, r.slowest
}

// each runs do for 0 to n-1, a hundred at a time.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := w; i < n; i += 100 {
				do(i)
			}
		})
	}
	wg.Wait()
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
