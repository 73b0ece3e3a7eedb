package anyclient

import (
	"context"
	"log"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/rlock"
)

func ExampleNew() {
	listen := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", "localhost:6379") }
	dial := func(ctx context.Context) (Conn, error) {
		conn, err := listen(ctx) // your client's
		return redigoConn{conn}, err
	}
	client, err := redlatch.NewWithTransport(New(dial, pubsub.Config{Dial: listen}))
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // ends the transport
	if err := rlock.New(client, "orders:42").Do(context.Background(), func(context.Context) error { return nil }); err != nil {
		log.Print(err)
	}
}
