package rfairlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// claim is the work.
func claim(ctx context.Context) error { return ctx.Err() }

// demo starts a server in this process and opens a client.
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

// Callers acquire the lock in the order of arrival, across processes and languages.
func ExampleNew() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	claimNext := func() error {
		billing := rfairlock.New(client, "billing-run")
		return billing.Do(ctx, claim)
	}
	fmt.Println(claimNext())
	// Output: <nil>
}

// Redisson's tryLock(10, 60, SECONDS) of a fair lock.
func ExampleNew_wait() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	billing := rfairlock.New(client, "billing-run")
	claimNext := func() (err error) {
		hold, err := billing.Lock(ctx, rlock.WithWait(10*time.Second), rlock.WithLease(time.Minute))
		switch {
		case errors.Is(err, redlatch.ErrNotAcquired):
			return nil // it has left the queue
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock()) }()
		return claim(hold.Context(ctx))
	}
	fmt.Println(claimNext())
	// Output: <nil>
}

// List the waiters; a waiter without a subscriber may be dead.
func ExampleNew_queue() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	billing := rfairlock.New(client, "billing-run")
	show := func() error {
		state, err := admin.Inspect(ctx, billing)
		if err != nil {
			return err
		}
		for _, w := range state.Queue { // the next is first
			fmt.Println(w.Position, w.Owner, w.Deadline, w.Subscribed)
		}
		return nil
	}
	fmt.Println(show())
	// Output: <nil>
}
