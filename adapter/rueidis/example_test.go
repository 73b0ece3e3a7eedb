package rueidis_test

import (
	"context"
	"log"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	latchrueidis "github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/rlock"
)

// The client's options select a cluster, a master with Sentinels, or one server.
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

// Sentinels name the master.
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

// Redisson subscribes to replicas of the server. Dialer connects to them with the client's options, so that dead
// waiters of fair locks can be detected.
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
