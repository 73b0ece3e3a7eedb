// Command degrade does a piece of work under a lock, and shows the two answers to the
// question what to do when Redis is down:
//
//	closed   no lock, no work. Right where two at once do harm.
//	open     work without the lock, and report it. Right where no work does more harm
//	         than work done twice: the lock was there to save effort.
//
// A lock that is held by another owner is refused by both: Redis answered. Copy it.
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

// policy is what to do without an answer from Redis.
type policy string

const (
	failClosed policy = "closed"
	failOpen   policy = "open"

	// silence is how long Redis may stay silent before that is an answer.
	silence = time.Second
	// patience is how long to wait for a lock that is held.
	patience = 2 * time.Second
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

// connect makes a client, also while Redis is down.
func connect(ctx context.Context, url string, opts ...redlatch.Option) (*redlatch.Client, error) {
	return redlatch.Open(ctx, url, append(opts, redlatch.WithLazyConnect(), redlatch.WithCommandTimeout(silence))...)
}

// guarded does the work under the lock, or, when Redis does not answer, as the policy
// says.
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

// away reports whether the error is Redis's, and not that the lock is held.
func away(err error) bool {
	var refusal *transport.ServerError // as while it loads, or has no memory left
	return errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain) ||
		errors.As(err, &refusal)
}

// work stands for the work.
func work(ctx context.Context) error {
	fmt.Println("working")
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
