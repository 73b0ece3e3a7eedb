package rueidis_test

import (
	"context"
	"log"

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

	client, err := latchrueidis.New(ctx, rdb)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // leaves rdb open

	err = rlock.New(client, "orders:42").Do(ctx, func(context.Context) error {
		return nil // the work
	})
	if err != nil {
		log.Print(err)
	}
}

// A master that Sentinels name.
func ExampleNewSentinel() {
	client, err := latchrueidis.NewSentinel(rueidis.ClientOption{
		InitAddress: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		Sentinel:    rueidis.SentinelOption{MasterSet: "mymaster"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
}

// One server with replicas on which Redisson listens: they are reached with the options of
// the client, so that dead waiters of fair locks are told from live ones.
func ExampleDialer() {
	option := rueidis.ClientOption{InitAddress: []string{"redis-1:6379"}, ForceSingleClient: true}
	rdb, err := rueidis.NewClient(option)
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	client, err := latchrueidis.New(context.Background(), rdb,
		redlatch.WithReplicaDialer(latchrueidis.Dialer(option)))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
}
