package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
)

// ordersLock returns a lock, its client and its server in this process, and a function that closes both.
func ordersLock(opts ...redlatch.Option) (orders *rlock.Lock, client *redlatch.Client, srv *embedded.Server, stop func()) {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	client, err = redlatch.New(srv.Dial, opts...)
	if err != nil {
		log.Panic(err)
	}
	return rlock.New(client, "orders:42"), client, srv, func() { _ = client.Close(); srv.Close() }
}

// take acquires a free lock. On a busy machine, a short lease may expire before the reply arrives.
func take(lock *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	for {
		hold, err := lock.Lock(context.Background(), opts...)
		switch {
		case err == nil:
			return hold
		case !errors.Is(err, redlatch.ErrNotAcquired):
			log.Panic(err)
		}
	}
}

// The five outcomes that a caller distinguishes.
func Example_errors() {
	orders, client, _, stop := ordersLock()
	defer stop()

	what := func(err error) string {
		switch {
		case err == nil:
			return "done"
		case errors.Is(err, redlatch.ErrLost):
			return "lost: stop the work"
		case errors.Is(err, redlatch.ErrNotAcquired):
			return "busy: another owner has the lock"
		case errors.Is(err, redlatch.ErrNotSent):
			return "unreachable: nothing happened"
		case errors.Is(err, redlatch.ErrUncertain):
			return "unknown: it may have happened"
		case errors.Is(err, redlatch.ErrInvalid), errors.Is(err, redlatch.ErrWrongType):
			return "misused: fix the program"
		}
		return "failed: " + redlatch.ErrorType(err) // a name for metrics
	}
	ctx := context.Background()
	hold := take(orders)
	_, err := orders.TryLock(ctx)
	fmt.Println(what(err))
	fmt.Println(what(hold.Unlock()))
	_, err = rlock.New(client, "").TryLock(ctx)
	fmt.Println(what(err))
	// Output:
	// busy: another owner has the lock
	// done
	// misused: fix the program
}

func ExampleErrNotAcquired() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders)
	_, err := orders.TryLock(context.Background())
	fmt.Println(errors.Is(err, redlatch.ErrNotAcquired))
	fmt.Println(hold.Unlock())
	// Output:
	// true
	// <nil>
}

func ExampleErrNotHeld() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders)
	fmt.Println(hold.Unlock())
	fmt.Println(errors.Is(hold.Err(), redlatch.ErrNotHeld))
	// Output:
	// <nil>
	// true
}

func ExampleErrLost() {
	orders, _, _, stop := ordersLock()
	defer stop()

	err := orders.Do(context.Background(), func(ctx context.Context) error {
		_, err := orders.ForceUnlock(ctx) // usually by an operator
		return err
	})
	fmt.Println(errors.Is(err, redlatch.ErrLost))
	var why redlatch.Loss
	if errors.As(err, &why) {
		fmt.Println(string(why))
	}
	// Output:
	// true
	// it was released by another client, or its key was deleted
}

func ExampleErrMaxHold() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders, rlock.WithMaxHold(20*time.Millisecond))
	<-hold.Context(context.Background()).Done()
	fmt.Println(errors.Is(hold.Unlock(), redlatch.ErrMaxHold))
	// Output: true
}

func ExampleErrHandedOver() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders)
	owner, err := hold.HandOver()
	fmt.Println(err, errors.Is(hold.Err(), redlatch.ErrHandedOver))
	fmt.Println(orders.UnlockAs(context.Background(), owner))
	// Output:
	// <nil> true
	// <nil>
}

func ExampleErrReentered() {
	orders, _, _, stop := ordersLock()
	defer stop()

	err := orders.Do(context.Background(), func(ctx context.Context) error {
		inner, err := orders.Lock(ctx)
		if err != nil {
			return err
		}
		_, err = inner.HandOver() // the outer hold would lose its lock
		fmt.Println(errors.Is(err, redlatch.ErrReentered))
		return inner.Unlock()
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func ExampleErrClosed() {
	orders, client, _, stop := ordersLock()
	defer stop()

	hold := take(orders)
	fmt.Println(client.Close())
	fmt.Println(errors.Is(hold.Err(), redlatch.ErrClosed))
	_, err := orders.TryLock(context.Background())
	fmt.Println(errors.Is(err, redlatch.ErrClosed))
	// Output:
	// <nil>
	// true
	// true
}

func ExampleErrUncertain() {
	orders, _, srv, stop := ordersLock()
	defer stop()
	ctx := context.Background()

	fmt.Println(take(orders).Unlock())
	srv.LoseReplies(1)
	_, err := orders.TryLock(ctx)
	fmt.Println(errors.Is(err, redlatch.ErrUncertain))
	fmt.Println(take(orders).Unlock()) // the client has released the lock of the lost reply
	// Output:
	// <nil>
	// true
	// <nil>
}

func ExampleErrNotSent() {
	refuse := func(context.Context) (redis.Conn, error) { return nil, errors.New("connection refused") }
	client, err := redlatch.New(refuse, redlatch.WithCommandTimeout(10*time.Millisecond))
	if err != nil {
		log.Panic(err)
	}
	defer client.Close() //nolint:errcheck // it ends the program

	_, err = rlock.New(client, "orders:42").Lock(context.Background())
	fmt.Println(errors.Is(err, redlatch.ErrNotSent))
	// Output: true
}

func ExampleErrWrongType() {
	orders, client, _, stop := ordersLock()
	defer stop()

	ctx := context.Background()

	fmt.Println(rlatch.New(client, orders.Name()).TrySetCount(ctx, 3))
	_, err := orders.TryLock(ctx)
	fmt.Println(errors.Is(err, redlatch.ErrWrongType))
	// Output:
	// true <nil>
	// true
}

// denied is a connection whose user has lost the right to publish: scripts fail at PUBLISH.
type denied struct {
	redis.ConnWithTimeout
	next *atomic.Bool
}

func (d denied) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	reply, err := d.ConnWithTimeout.ReceiveWithTimeout(timeout)
	if err == nil && d.next.CompareAndSwap(true, false) {
		return nil, redis.Error("ERR ACL failure in script: The user executing the script can't access at least one of the channels")
	}
	return reply, err
}

func ExampleErrNotNotified() {
	_, _, srv, stop := ordersLock()
	defer stop()
	var deny atomic.Bool
	client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		conn, err := srv.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return denied{conn.(redis.ConnWithTimeout), &deny}, nil
	})
	if err != nil {
		log.Panic(err)
	}
	defer client.Close() //nolint:errcheck // it ends the program

	orders := rlock.New(client, "orders:42")
	hold := take(orders)
	deny.Store(true)
	fmt.Println(errors.Is(hold.Unlock(), redlatch.ErrNotNotified))
	fmt.Println(orders.IsLocked(context.Background()))
	// Output:
	// true
	// false <nil>
}

func ExampleErrNotReplicated() {
	orders, _, _, stop := ordersLock(redlatch.WithReplicaSync(1, time.Millisecond))
	defer stop()

	_, err := orders.TryLock(context.Background()) // the server has no replica
	fmt.Println(errors.Is(err, redlatch.ErrNotReplicated))
	// Output: true
}

func ExampleErrInvalid() {
	orders, _, _, stop := ordersLock()
	defer stop()

	_, err := orders.Lock(context.Background(), rlock.WithLease(60)) // 60 ns
	fmt.Println(errors.Is(err, redlatch.ErrInvalid))
	// Output: true
}

// The server can't renew the lease, or the process is paused.
func ExampleLossNotRenewed() {
	orders, _, srv, stop := ordersLock(redlatch.WithLossMargin(30*time.Second - 20*time.Millisecond)) // of a lease of 30 s
	defer stop()

	hold := take(orders)
	srv.FailWith("MISCONF Redis cannot write to its disk")
	defer srv.Heal()
	<-hold.Context(context.Background()).Done()
	fmt.Println(errors.Is(hold.Err(), redlatch.LossNotRenewed))
	// Output: true
}

func ExampleLossLeaseOver() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders, rlock.WithLease(20*time.Millisecond))
	<-hold.Context(context.Background()).Done()
	fmt.Println(errors.Is(hold.Err(), redlatch.LossLeaseOver))
	// Output: true
}

func ExampleLossTaken() {
	orders, _, _, stop := ordersLock()
	defer stop()

	hold := take(orders)
	fmt.Println(orders.ForceUnlock(context.Background()))
	fmt.Println(errors.Is(hold.Unlock(), redlatch.LossTaken))
	// Output:
	// true <nil>
	// true
}

// The server restarts without its data.
func ExampleLossForgotten() {
	orders, _, srv, stop := ordersLock()
	defer stop()

	hold := take(orders)
	srv.FastForward(time.Hour) // deletes the key
	srv.DropConnections()
	<-hold.Context(context.Background()).Done()
	fmt.Println(errors.Is(hold.Err(), redlatch.LossForgotten))
	// Output: true
}
