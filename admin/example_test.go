package admin_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
)

func ExampleInspect() {
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
	orders := rlock.New(client, "orders:42")
	hold, err := orders.Lock(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer hold.Unlock() //nolint:errcheck // it ends the program

	state, err := admin.Inspect(ctx, orders) // a consistent snapshot of holders, counts and lease
	if err != nil {
		log.Print(err)
		return
	}
	for _, h := range state.Holders {
		fmt.Println(h.Owner == hold.Owner(), h.Count, state.TTL > 20*time.Second)
	}
	// Output: true 1 true
}
