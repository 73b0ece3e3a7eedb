package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
)

// ship is the work that needs the lock.
func ship(ctx context.Context) error { return ctx.Err() }

// Most programs need only a client, a lock, and work under the lock.
func Example() {
	srv, err := embedded.Start() // in a real program: your Redis
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	ctx := context.Background()
	client, err := redlatch.Open(ctx, srv.URL())
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program

	orders := rlock.New(client, "orders:42")
	err = orders.Do(ctx, func(ctx context.Context) error {
		locked, err := orders.IsLocked(ctx)
		fmt.Println("inside, locked:", locked, err)
		return ship(ctx)
	})
	fmt.Println("done:", err)
	// Output:
	// inside, locked: true <nil>
	// done: <nil>
}

func ExampleOpen() {
	ctx := context.Background()
	shipOrders := func() (err error) {
		client, err := redlatch.Open(ctx, "redis://localhost:6379")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, client.Close()) }()

		orders := rlock.New(client, "orders:42")
		return orders.Do(ctx, func(ctx context.Context) error {
			return ship(ctx) // ctx ends with cause redlatch.ErrLost if the lock is lost
		})
	}
	if err := shipOrders(); err != nil {
		log.Print(err)
	}
}

// A dial function instead of a URL, here of a server in the same process.
func ExampleNew() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	client, err := redlatch.New(srv.Dial, redlatch.WithClientName("worker"))
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(rlock.New(client, "orders:42").Do(context.Background(), ship))
	fmt.Println(client.Close())
	// Output:
	// <nil>
	// <nil>
}

// A program that already has a pool can reuse its dial function.
func ExampleNew_pool() {
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", "localhost:6379", redis.DialDatabase(2))
	}}
	client, err := redlatch.New(pool.DialContext)
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // nothing was done yet
}

// Count the events of a client's locks for metrics.
func ExampleWithObserver() {
	srv, err := embedded.Start()
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()
	ctx, url := context.Background(), srv.URL()
	var acquired, lost atomic.Int64

	observer := redlatch.Observer{
		Acquired: func(ctx context.Context, e redlatch.Acquired) context.Context {
			acquired.Add(1) // record e.Wait in a histogram
			return ctx
		},
		Ended: func(_ context.Context, e redlatch.Ended) {
			if errors.Is(e.Err, redlatch.ErrLost) {
				lost.Add(1)
			}
		},
	}
	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(observer))
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program

	err = rlock.New(client, "orders:42").Do(ctx, ship)
	fmt.Println(err, acquired.Load(), lost.Load())
	// Output: <nil> 1 0
}

// Log which operation failed, on which lock.
func ExampleLockError() {
	client, stop := demo()
	defer stop()

	orders := rlock.New(client, "orders:42")
	hold, err := orders.Lock(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	defer hold.Unlock() //nolint:errcheck // it ends the program

	_, err = orders.TryLock(context.Background())
	var locked *redlatch.LockError
	if errors.Is(err, redlatch.ErrNotAcquired) && errors.As(err, &locked) && locked.TTL > 0 {
		fmt.Printf("%s %s: held for up to %.0f s\n", locked.Op, locked.Name, locked.TTL.Seconds())
	}
	// Output: try-lock orders:42: held for up to 30 s
}

// The commands redlatch status, list and watch show the label next to the owner.
func ExampleWithLabel() {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	client, stop := demo(redlatch.WithLabel(fmt.Sprintf("billing@%s pid %d", host, os.Getpid())))
	defer stop()

	fmt.Println(rlock.New(client, "orders:42").Do(context.Background(), ship))
	// Output: <nil>
}

// Without a replica, a failover would free the lock.
func ExampleWithReplicaSync() {
	srv, err := embedded.Start() // in a real program: your Redis, with a replica
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()
	ctx, url := context.Background(), srv.URL()

	client, err := redlatch.Open(ctx, url, redlatch.WithReplicaSync(1, time.Second))
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close() //nolint:errcheck // it ends the program
	err = rlock.New(client, "orders:42").Do(ctx, ship)
	fmt.Println(errors.Is(err, redlatch.ErrNotReplicated)) // here there is no replica
	// Output: true
}
