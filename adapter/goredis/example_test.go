package goredis_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/goredis"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// ship is the work that needs the lock.
func ship(ctx context.Context) error { return ctx.Err() }

// Use your existing client for one server, Sentinels (NewFailoverClient) or a cluster
// (NewClusterClient).
func ExampleNew() {
	ctx := context.Background()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:7000", "localhost:7001"}})
	defer rdb.Close() //nolint:errcheck // it ends the program

	shipOrders := func() error {
		client, err := goredis.New(ctx, rdb)
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // leaves rdb alone
		return rlock.New(client, "orders:42").Do(ctx, ship)
	}
	if err := shipOrders(); err != nil {
		log.Print(err)
	}
}

// For a fleet whose Redisson clients have shardedSubscriptionMode set to OFF.
func ExampleNew_shardedPubSub() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:7000"}})
	defer rdb.Close() //nolint:errcheck // it ends the program
	client, err := goredis.New(context.Background(), rdb, redlatch.WithShardedPubSub(transport.ShardingOff))
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program
}
