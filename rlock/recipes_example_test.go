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

// A leader: it leads while it holds the lock, and steps down when it loses it.
// The program examples/leader is this in full.
func ExampleLock_Do_leader() {
	client, stop := demo()
	defer stop()
	ctx, retire := context.WithCancel(context.Background())
	lock := rlock.New(client, "leader")
	lead := func(ctx context.Context) error {
		fmt.Println("leading")
		retire() // in a real program: SIGTERM
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for ctx.Err() == nil {
		err := lock.Do(ctx, lead, rlock.WithWatchdog(6*time.Second))
		if errors.Is(err, redlatch.ErrLost) {
			fmt.Println("stepped down") // and stands for election again
		}
	}
	fmt.Println(lock.IsLocked(context.Background()))
	// Output:
	// leading
	// false <nil>
}

// Without Redis: work that may go on without its lock, and says so. The program
// examples/degrade has the other answer, too.
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

// After a loss: the work is cancelled, and what it wrote too late is refused by the
// resource, because the version that it has read is not the present one. The program
// examples/fencing is this in full.
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
	<-hold.Context(ctx).Done() // stands still for too long

	err = orders.Do(ctx, func(context.Context) error { return update(version) })
	fmt.Println("the next one:", err)
	fmt.Println("the late one:", errors.Is(hold.Err(), redlatch.ErrLost), update(read))
	// Output:
	// the next one: <nil>
	// the late one: true the row was changed by somebody else
}
