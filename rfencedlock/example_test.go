package rfencedlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfencedlock"
)

func ExampleLock_Do() {
	server, err := embedded.Start() // or your own Redis
	if err != nil {
		log.Print(err)
		return
	}
	defer server.Close()
	ctx := context.Background()
	client, err := redlatch.Open(ctx, server.URL())
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program

	lock := rfencedlock.New(client, "orders:42")
	for range 2 {
		err := lock.Do(ctx, func(_ context.Context, hold *rfencedlock.Hold) error {
			fmt.Println("write with token", hold.Token()) // package fence has guards that check it
			return nil
		})
		if err != nil {
			log.Print(err)
		}
	}
	// Output:
	// write with token 1
	// write with token 2
}
