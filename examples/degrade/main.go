// Command degrade works under a lock and shows two policies for the case that Redis is down:
//
//	closed   do not work without the lock, if concurrent work does harm
//	open     work without the lock and report it, if duplicate work does less harm than no work
//
// With either policy, it does not work if another owner holds the lock or the key is not a lock,
// because Redis has answered. Copy it into your program.
//
//	go run ./examples/degrade redis://localhost:6379 open
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// policy is the reaction when Redis does not answer.
type policy string

const (
	failClosed policy = "closed"
	failOpen   policy = "open"

	silence  = time.Second     // after this time without a reply, Redis counts as down
	patience = 2 * time.Second // how long to wait for a lock that is held
)

func main() {
	url, when := "redis://localhost:6379", failClosed
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if len(os.Args) > 2 {
		when = policy(os.Args[2])
	}
	if err := run(context.Background(), url, when); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, when policy) error {
	client, err := connect(ctx, url)
	if err != nil {
		return err
	}
	err = guarded(ctx, rlock.New(client, "degrade-example"), when, work)
	return errors.Join(err, client.Close())
}

// connect returns a client even if Redis is down.
func connect(ctx context.Context, url string, opts ...redlatch.Option) (*redlatch.Client, error) {
	return redlatch.Open(ctx, url, append(opts, redlatch.WithLazyConnect(), redlatch.WithCommandTimeout(silence))...)
}

// guarded calls work under the lock, or follows the policy if Redis does not answer.
func guarded(ctx context.Context, lock *rlock.Lock, when policy, work func(context.Context) error) error {
	if when == failClosed {
		return lock.Do(ctx, work, rlock.WithWait(patience))
	}
	hold, err := lock.Lock(ctx, rlock.WithWait(patience))
	switch {
	case ctx.Err() == nil && away(err):
		log.Print("working without the lock: ", err)
	case err != nil:
		return err
	default:
		defer func() {
			if err := hold.Unlock(); err != nil {
				log.Print("worked without the lock for a while: ", err)
			}
		}()
	}
	return work(ctx) // not the hold's context, because losing the lock must not end the work
}

// away reports whether Redis failed, rather than reported that the key is in use.
func away(err error) bool {
	var refusal *transport.ServerError // such as LOADING or OOM
	return errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain) ||
		errors.As(err, &refusal) && !errors.Is(err, redlatch.ErrWrongType)
}

// work is a placeholder for the work under the lock.
func work(ctx context.Context) error {
	fmt.Println("working")
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
