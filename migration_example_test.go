package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// demo returns a client of a server in this process, and a function that closes both.
func demo(opts ...redlatch.Option) (client *redlatch.Client, stop func()) {
	_, client, _, stop = ordersLock(opts...)
	return client, stop
}

// The Redlatch options for a Redisson configuration.
func Example_migrateConfiguration() {
	srv, err := embedded.Start() // in a real program: your Redis
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()
	ctx, url, secret := context.Background(), srv.URL(), func(context.Context) (user, password string, err error) { return }

	client, err := redlatch.Open(ctx, url,
		redlatch.WithWatchdogTimeout(30*time.Second),  // lockWatchdogTimeout
		redlatch.WithFairWaitTimeout(300*time.Second), // fairLockWaitTimeout
		// Only if Java has a nameMapper: redlatch.WithNameMapper(redlatch.PrefixMapper("billing:")),
		redlatch.WithCredentials(secret),           // credentialsResolver
		redlatch.WithCommandTimeout(3*time.Second), // timeout
		redlatch.WithDialTimeout(10*time.Second),   // connectTimeout
		redlatch.WithClientName("billing-go"),      // clientName
	)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(client.Close())
	// Output: <nil>
}

// lockAsync(threadId) here and unlockAsync(threadId) there, in either language.
func Example_migrateThreadID() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	orders := rlock.New(client, "orders:42")
	redissonID := uuid.NewString() // getId() in Java

	finish := func() error {
		owner, err := codec.ParseOwner(redissonID + ":77") // getId(), and the threadId of lockAsync
		if err != nil {
			return err
		}
		hold, err := orders.Resume(ctx, owner) // renewed here from now on
		if err != nil {
			return err
		}
		if err := ship(hold.Context(ctx)); err != nil {
			return err
		}
		return hold.Unlock() // unlockAsync(77)
	}
	fmt.Println(errors.Is(finish(), redlatch.ErrNotHeld)) // no hold here has Java's owner
	// Output: true
}

// A multi-lock: both locks, or neither.
func Example_migrateMultiLock() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()

	both := rmultilock.New(client, "stock:7", "orders:42")
	err := both.Do(ctx, func(ctx context.Context) error {
		return ship(ctx) // ctx ends when either lock is lost
	})
	fmt.Println(err)
	// Output: <nil>
}

// In Java, the thread re-enters the fair lock. Here, a call with the hold's context does.
func Example_migrateReentry() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	billing := rfairlock.New(client, "billing-run")

	err := billing.Do(ctx, func(ctx context.Context) error {
		hold, err := billing.TryLock(ctx) // the same context: entered again
		if err != nil {
			return err
		}
		count, err := billing.HoldCount(ctx, hold.Owner()) // getHoldCount()
		fmt.Println(count, err)
		return hold.Unlock()
	})
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// <nil>
}
