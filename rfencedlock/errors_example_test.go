package rfencedlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfencedlock"
)

func ExampleErrCounter() {
	srv, client, stop := open()
	defer stop()
	ctx := context.Background()

	conn, err := srv.Dial(ctx)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(conn.Do("SET", "redisson_lock_token:{orders:42}", "not a number"))
	_, err = rfencedlock.New(client, "orders:42").TryLock(ctx)
	fmt.Println(errors.Is(err, rfencedlock.ErrCounter))
	// Output:
	// OK <nil>
	// true
}

func ExampleErrEpoch() {
	_, client, stop := open()
	defer stop()

	orders := rfencedlock.New(client, "orders:42", rfencedlock.WithEpoch(1))
	_, err := orders.TryLock(context.Background()) // the counter is still below the epoch
	fmt.Println(errors.Is(err, rfencedlock.ErrEpoch))
	// Output: true
}

// open returns a server in this process, a client of it, and a function that closes both.
func open() (*embedded.Server, *redlatch.Client, func()) {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	client, err := redlatch.New(srv.Dial)
	if err != nil {
		log.Panic(err)
	}
	return srv, client, func() { _ = client.Close(); srv.Close() }
}
