package rsemaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
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

func ExampleNewExpirable() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	crawlers := rsemaphore.NewExpirable(client, "crawlers")
	if _, err := crawlers.TrySetPermits(ctx, 3); err != nil {
		log.Panic(err)
	}
	err := crawlers.Do(ctx, 1, func(ctx context.Context) error {
		free, err := crawlers.Available(ctx)
		fmt.Println("left for others:", free)
		return err // ctx ends with cause redlatch.ErrLost if the permit is lost
	})
	if err != nil {
		log.Panic(err)
	}
	// Output: left for others: 2
}

func ExampleExpirable_Acquire() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	memory := rsemaphore.NewExpirable(client, "gigabytes")
	if err := memory.SetPermits(ctx, 16); err != nil {
		log.Panic(err)
	}
	big, err := memory.Acquire(ctx, 12)
	if err != nil {
		log.Panic(err)
	}
	_, err = memory.Acquire(ctx, 8, rlock.WithWait(10*time.Millisecond))
	fmt.Println("too few are left:", errors.Is(err, redlatch.ErrNotAcquired))
	small, err := memory.TryAcquire(ctx, 4)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(big.IDs()), "and", len(small.IDs()))
	_, err = memory.Acquire(ctx, 17)
	fmt.Println("more than there are:", errors.Is(err, rsemaphore.ErrTooMany))
	_ = small.Release()
	_ = big.Release()
	// Output:
	// too few are left: true
	// 12 and 4
	// more than there are: true
}

func ExampleExpirable_Release() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	slots := rsemaphore.NewExpirable(client, "slots")
	if err := slots.SetPermits(ctx, 1); err != nil {
		log.Panic(err)
	}
	slot, err := slots.Acquire(ctx, 1, rlock.WithLease(time.Minute))
	if err != nil {
		log.Panic(err)
	}
	ids := slot.IDs() // go with the job, to a program in any language
	_ = slot.LetExpire()

	n, err := slots.Release(ctx, ids...)
	fmt.Println(n, err)
	_, err = slots.Release(ctx, ids...)
	fmt.Println(errors.Is(err, redlatch.ErrNotHeld))
	// Output:
	// 1 <nil>
	// true
}

func ExampleExpirable_Extend() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	slots := rsemaphore.NewExpirable(client, "slots")
	if err := slots.SetPermits(ctx, 1); err != nil {
		log.Panic(err)
	}
	slot, err := slots.Acquire(ctx, 1, rlock.WithLease(time.Minute))
	if err != nil {
		log.Panic(err)
	}
	ids := slot.IDs()
	_ = slot.LetExpire() // the program that gets the IDs keeps the permit

	fmt.Println(slots.Extend(ctx, time.Hour, ids...))
	in, err := slots.Inspect(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(in.Permits[0].Left > 59*time.Minute)
	// Output:
	// <nil>
	// true
}

func ExampleSemaphore_ReleaseIfExists() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	today := rsemaphore.New(client, "exports:2026-12-01")
	if _, err := today.TrySetPermits(ctx, 3, 24*time.Hour); err != nil {
		log.Panic(err)
	}
	if err := today.Acquire(ctx, 1); err != nil {
		log.Panic(err)
	}
	// Release would create the semaphore again if it had expired.
	fmt.Println(today.ReleaseIfExists(ctx, 1))
	// Output: true <nil>
}

func ExampleNew() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	tickets := rsemaphore.New(client, "tickets")
	if _, err := tickets.TrySetPermits(ctx, 2, 0); err != nil {
		log.Panic(err)
	}
	if err := tickets.Acquire(ctx, 2); err != nil {
		log.Panic(err)
	}
	fmt.Println(errors.Is(tickets.TryAcquire(ctx, 1), redlatch.ErrNotAcquired))
	if err := tickets.Release(ctx, 2); err != nil { // never after redlatch.ErrUncertain from Acquire
		log.Panic(err)
	}
	fmt.Println(tickets.Available(ctx))
	// Output:
	// true
	// 2 <nil>
}
