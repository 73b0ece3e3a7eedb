package rlatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlatch"
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

// A report waits for three imports, which may run in any process or language.
func ExampleNew() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	imports := rlatch.New(client, "imports:2026-11-24")
	if _, err := imports.TrySetCount(ctx, 3); err != nil {
		log.Panic(err)
	}
	for range 3 {
		go func() {
			if err := imports.CountDown(ctx); err != nil {
				log.Print(err) // if uncertain, it may have counted, so do not retry
			}
		}()
	}
	if err := imports.Wait(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println("all imports are done")
	// Output: all imports are done
}

// Always limit the wait: a worker that has died never counts down.
func ExampleLatch_Wait_deadline() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	imports := rlatch.New(client, "imports:2026-11-25")
	if _, err := imports.TrySetCount(ctx, 2); err != nil {
		log.Panic(err)
	}
	_ = imports.CountDown(ctx)
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := imports.Wait(soon); err != nil { // rlatch.ErrNotOpen, if the server replied in time
		left, _ := imports.Count(ctx)
		fmt.Println("not done:", left)
	}
	// Output: not done: 1
}
