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

// claim stands for the work that needs its turn.
func claim(ctx context.Context) error { return ctx.Err() }

// demo returns a client of a server in this process, and what ends both.
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
		_ = client.Close() // the server goes, too
		srv.Close()
	}
}

// Callers are served in the order in which they ask, whichever process or
// language they are in.
func ExampleNew() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	claimNext := func() error {
		billing := rfairlock.New(client, "billing-run")
		return billing.Do(ctx, claim) // in the order in which the callers asked
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
			return nil // not this time: the place in the queue is given up
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock()) }()
		return claim(hold.Context(ctx))
	}
	fmt.Println(claimNext())
	// Output: <nil>
}

// Which waiters are queued, and which of them may have died.
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
		for _, w := range state.Queue { // the next one first
			fmt.Println(w.Position, w.Owner, w.Deadline, w.Subscribed)
		}
		return nil
	}
	fmt.Println(show())
	// Output: <nil>
}
