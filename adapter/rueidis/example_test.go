package rueidis_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	latchrueidis "github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/rlock"
)

// The nodes of a cluster, a master's Sentinels, or one server: what the client's
// options say decides.
func ExampleNew() {
	ctx := context.Background()
	rdb, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()

	t, err := latchrueidis.New(ctx, rdb)
	if err != nil {
		log.Fatal(err)
	}
	client, err := redlatch.NewWithTransport(t)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // closes t, and leaves rdb open

	err = rlock.New(client, "orders:42").Do(ctx, func(context.Context) error {
		return nil // the work
	})
	if err != nil {
		log.Print(err)
	}
}

// What a client with Sentinels, and the transport over it, are best made with.
func ExampleWithClientOption() {
	ctx := context.Background()
	option := rueidis.ClientOption{
		InitAddress: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		Sentinel: rueidis.SentinelOption{
			MasterSet:               "mymaster",
			TopologyRefreshInterval: time.Second, // a Sentinel that is cut off tells of nothing
		},
	}
	rdb, err := rueidis.NewClient(option)
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()

	// The transport reaches a new master before rdb does, and replicas, on which it counts
	// listeners, so that dead waiters of fair locks are told from live ones.
	t, err := latchrueidis.New(ctx, rdb, latchrueidis.WithClientOption(option))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = t.Close() }()
}

// Servers that are reached in another way than the client's.
func ExampleWithServerClient() {
	ctx := context.Background()
	rdb, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"sentinel-1:26379"},
		Sentinel:    rueidis.SentinelOption{MasterSet: "mymaster"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()

	server := func(_ context.Context, addr string) (rueidis.Client, error) {
		return rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{addr}, ForceSingleClient: true, Username: "locks", Password: "secret",
		})
	}
	t, err := latchrueidis.New(ctx, rdb, latchrueidis.WithServerClient(server))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = t.Close() }()
}
