package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
)

// ship is the work that needs the lock.
func ship(ctx context.Context) error { return ctx.Err() }

// demo starts a server in this process and returns its client.
func demo() (client *redlatch.Client, stop func()) {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Fatal(err)
	}
	client, err = redlatch.New(srv.Dial)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close() // the server stops next
		srv.Close()
	}
}

func ExampleLock_Do() {
	client, stop := demo()
	defer stop()
	orders := rlock.New(client, "orders:42")
	err := orders.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("shipping under the lock")
		return ship(ctx) // ctx ends with cause redlatch.ErrLost if the lock is lost
	})
	fmt.Println(err)
	// Output:
	// shipping under the lock
	// <nil>
}

func ExampleLock_Lock() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	orders := rlock.New(client, "orders:42")
	shipOrders := func() (err error) {
		hold, err := orders.Lock(ctx) // ctx bounds only the wait
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock()) }() // needs no context
		return ship(hold.Context(ctx))
	}
	fmt.Println(shipOrders())
	// Output: <nil>
}

// Redisson's tryLock(10, 60, SECONDS).
func ExampleLock_Lock_waitAndLease() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	orders := rlock.New(client, "orders:42")
	shipOrders := func() (err error) {
		hold, err := orders.Lock(ctx, rlock.WithWait(10*time.Second), rlock.WithLease(time.Minute))
		switch {
		case errors.Is(err, redlatch.ErrNotAcquired):
			return nil // another owner has it
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock()) }()
		return ship(hold.Context(ctx))
	}
	fmt.Println(shipOrders())
	// Output: <nil>
}

// One attempt: a second caller does not wait.
func ExampleLock_TryLock() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	report := rlock.New(client, "nightly-report")
	first, err := report.TryLock(ctx)
	fmt.Println("first:", err)
	_, err = report.TryLock(ctx)
	fmt.Println("second is refused:", errors.Is(err, redlatch.ErrNotAcquired))
	fmt.Println("first unlocks:", first.Unlock())
	third, err := report.TryLock(ctx)
	fmt.Println("third:", err)
	fmt.Println("third unlocks:", third.Unlock())
	// Output:
	// first: <nil>
	// second is refused: true
	// first unlocks: <nil>
	// third: <nil>
	// third unlocks: <nil>
}

// The context ends when the lock is lost; its cause is the reason.
func ExampleHold_Context() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	hold, err := rlock.New(client, "orders:42").Lock(ctx, rlock.WithLease(time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	work := hold.Context(ctx)
	<-work.Done() // work that takes longer than the lease
	fmt.Println(work.Err())
	fmt.Println(context.Cause(work))
	fmt.Println(errors.Is(hold.Unlock(), redlatch.ErrLost))
	// Output:
	// context canceled
	// redlatch: lock lost: its own lease expired
	// true
}

// A job that runs at most once per hour leaves its lock to the lease.
func ExampleHold_LetExpire() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	hourly := rlock.New(client, "hourly-report")
	run := func() error {
		hold, err := hourly.TryLock(ctx, rlock.WithLease(59*time.Minute))
		if err != nil {
			return err
		}
		fmt.Println("reporting")
		return hold.LetExpire()
	}
	fmt.Println(run())
	fmt.Println("again this hour:", errors.Is(run(), redlatch.ErrNotAcquired))
	// Output:
	// reporting
	// <nil>
	// again this hour: true
}

// Re-entry: the inner call locks with the context of the outer hold.
func ExampleLock_Do_reentry() {
	client, stop := demo()
	defer stop()
	orders := rlock.New(client, "orders:42")
	ctx := context.Background()
	shipOrders := func() error {
		return orders.Do(ctx, func(ctx context.Context) error {
			return orders.Do(ctx, ship) // re-enters the hold
		})
	}
	fmt.Println(shipOrders())
	// Output: <nil>
}

// A job acquires the lock here and finishes elsewhere.
func ExampleHold_HandOver() {
	client, stop := demo()
	defer stop()
	orders := rlock.New(client, "orders:42")
	ctx := context.Background()
	hold, err := orders.Lock(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	handOver := func() error {
		owner, err := hold.HandOver() // put owner.String() into the job
		if err != nil {
			return err
		}
		hold, err = orders.Resume(ctx, owner) // there, after codec.ParseOwner
		return err
	}
	fmt.Println(handOver())
	fmt.Println(hold.Unlock())
	// Output:
	// <nil>
	// <nil>
}
