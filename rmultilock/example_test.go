package rmultilock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func open(ctx context.Context) (*redlatch.Client, func()) {
	server, err := embedded.Start() // or your own Redis
	if err != nil {
		log.Panic(err)
	}
	client, err := redlatch.Open(ctx, server.URL())
	if err != nil {
		log.Panic(err)
	}
	return client, func() { _ = client.Close(); server.Close() }
}

// A transfer locks both accounts. A transfer in the opposite direction waits and cannot deadlock.
func ExampleNew() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	both := rmultilock.New(client, "account:7", "account:3")
	err := both.Do(ctx, func(context.Context) error {
		_, err := rlock.New(client, "account:3").TryLock(ctx)
		fmt.Println("one of them alone is refused:", errors.Is(err, redlatch.ErrNotAcquired))
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	// Output: one of them alone is refused: true
}

// Locks of several kinds: the catalogue is read, and the stock is changed.
func ExampleOf() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	both := rmultilock.Of(rreadwritelock.New(client, "catalogue").Read(), rlock.New(client, "stock"))
	hold, err := both.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(hold.Names(), hold.Err())
	if err := hold.Unlock(); err != nil {
		log.Panic(err)
	}
	// Output: [catalogue stock] <nil>
}
