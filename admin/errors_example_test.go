package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// fairLock returns a fair lock on the server that dial connects to, and a function that closes its client.
func fairLock(dial func(context.Context) (redis.Conn, error)) (orders *rlock.Lock, stop func()) {
	client, err := redlatch.New(dial)
	if err != nil {
		log.Panic(err)
	}
	return rfairlock.New(client, "orders:42"), func() { _ = client.Close() }
}

// queue holds the lock, queues a waiter, and returns the waiter when it has subscribed.
func queue(ctx context.Context, lock *rlock.Lock) admin.Waiter {
	if _, err := lock.Lock(ctx); err != nil {
		log.Panic(err)
	}
	go func() { _, _ = lock.Lock(ctx) }() // until the client is closed
	for {
		state, err := admin.Inspect(ctx, lock)
		if err != nil {
			log.Panic(err)
		}
		if len(state.Queue) > 0 && state.Queue[0].Subscribed {
			return state.Queue[0]
		}
		time.Sleep(time.Millisecond)
	}
}

func ExampleErrNotQueued() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	defer srv.Close()
	orders, stop := fairLock(srv.Dial)
	defer stop()

	_, err = admin.Evict(context.Background(), orders, "5c6f4d8e-4c5b-4f37-a2cb-1d8e0b8a5f10:1")
	fmt.Println(errors.Is(err, admin.ErrNotQueued))
	// Output: true
}

func ExampleErrWaiterAlive() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	defer srv.Close()
	orders, stop := fairLock(srv.Dial)
	defer stop()
	ctx := context.Background()

	_, err = admin.Evict(ctx, orders, queue(ctx, orders).Text)
	fmt.Println(errors.Is(err, admin.ErrWaiterAlive))
	// Output: true
}

// uncounted is a connection whose user may not send PUBSUB.
type uncounted struct{ redis.ConnWithTimeout }

func (u uncounted) Send(command string, args ...any) error {
	if command == "PUBSUB" {
		command = "UNKNOWN"
	}
	return u.ConnWithTimeout.Send(command, args...)
}

func ExampleErrNotCounted() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	defer srv.Close()
	orders, stop := fairLock(srv.Dial)
	defer stop()
	ctx := context.Background()
	waiter := queue(ctx, orders)

	operator, stopOperator := fairLock(func(ctx context.Context) (redis.Conn, error) {
		conn, err := srv.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return uncounted{conn.(redis.ConnWithTimeout)}, nil
	})
	defer stopOperator()
	_, err = admin.Evict(ctx, operator, waiter.Text)
	fmt.Println(errors.Is(err, admin.ErrNotCounted))
	// Output: true
}
