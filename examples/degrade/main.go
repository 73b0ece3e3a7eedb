// Command degrade works under a lock and shows the two policies for a Redis that is down:
//
//	closed   no lock, no work: if two at the same time do harm
//	open     work without the lock and report it: if no work does more harm than duplicate work
//
// Both reject a lock that another owner holds, because Redis answered. Copy it.
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

// policy is the reaction to a missing answer from Redis.
type policy string

const (
	failClosed policy = "closed"
	failOpen   policy = "open"

	silence  = time.Second     // until Redis counts as down
	patience = 2 * time.Second // for a lock that is held
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

// guarded works under the lock, or follows the policy if Redis does not answer.
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
	return work(ctx) // not the hold's context: a loss must not end it
}

// away reports whether Redis failed, in contrast to a lock that is held.
func away(err error) bool {
	var refusal *transport.ServerError // such as LOADING or OOM
	return errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain) ||
		errors.As(err, &refusal)
}

// work is a placeholder.
func work(ctx context.Context) error {
	fmt.Println("working")
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
