package rreadwritelock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
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

func ExampleNew() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	catalogue := rreadwritelock.New(client, "catalogue")
	one, err := catalogue.Read().Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	two, err := catalogue.Read().TryLock(ctx)
	fmt.Println("a second reader:", err)
	_, err = catalogue.Write().TryLock(ctx)
	fmt.Println("a writer is refused:", errors.Is(err, redlatch.ErrNotAcquired))
	_ = one.Unlock()
	_ = two.Unlock()
	err = catalogue.Write().Do(ctx, func(context.Context) error {
		fmt.Println("the writer is alone")
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	// Output:
	// a second reader: <nil>
	// a writer is refused: true
	// the writer is alone
}

// Downgrade: a writer that keeps reading admits other readers, but not other writers.
func ExampleLock_Write_downgrade() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	catalogue := rreadwritelock.New(client, "catalogue")
	writes, err := catalogue.Write().Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	reads, err := catalogue.Read().Lock(writes.Context(ctx))
	if err != nil {
		log.Panic(err)
	}
	_ = writes.Unlock()
	_, err = catalogue.Write().Lock(reads.Context(ctx))
	fmt.Println("no upgrade:", errors.Is(err, rreadwritelock.ErrUpgrade))
	other, err := catalogue.Read().TryLock(ctx)
	fmt.Println("another reader:", err)
	_ = other.Unlock()
	_ = reads.Unlock()
	// Output:
	// no upgrade: true
	// another reader: <nil>
}
