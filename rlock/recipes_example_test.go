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

// Work that may run without its lock if Redis is unreachable. The program examples/degrade also
// shows the opposite.
func ExampleLock_Lock_failOpen() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Print(err)
		return
	}
	client, err := redlatch.New(srv.Dial, redlatch.WithCommandTimeout(50*time.Millisecond))
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program
	srv.Close()          // Redis is gone

	lock := rlock.New(client, "thumbnails")
	thumbnails := func(ctx context.Context) error {
		hold, err := lock.Lock(ctx, rlock.WithWait(2*time.Second))
		switch {
		case errors.Is(err, redlatch.ErrNotAcquired):
			return err // another worker has it
		case err != nil:
			fmt.Println("working without the lock")
		default:
			defer hold.Unlock() //nolint:errcheck // the work is done either way
		}
		return ship(ctx)
	}
	fmt.Println(thumbnails(context.Background()))
	// Output:
	// working without the lock
	// <nil>
}

// The resource rejects a late write after a loss, because the version that the write expects has
// changed. See the program examples/fencing, and package rfencedlock for tokens.
func ExampleHold_Err_fencing() {
	client, stop := demo()
	defer stop()
	ctx := context.Background()
	version := 7 // of a row in a database
	update := func(read int) error {
		if read != version { // UPDATE … WHERE id = ? AND version = ?
			return errors.New("the row was changed by somebody else")
		}
		version++
		return nil
	}
	orders := rlock.New(client, "orders:42")
	hold, err := orders.Lock(ctx, rlock.WithLease(time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	read := version
	<-hold.Context(ctx).Done() // a pause longer than the lease

	err = orders.Do(ctx, func(context.Context) error { return update(version) })
	fmt.Println("the next holder:", err)
	fmt.Println("the late holder:", errors.Is(hold.Err(), redlatch.ErrLost), update(read))
	// Output:
	// the next holder: <nil>
	// the late holder: true the row was changed by somebody else
}
