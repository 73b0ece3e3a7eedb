// Package moving contains the code from docs/coming-from.md: programs that use locks from redsync, bsm/redislock and
// rueidislock, the same programs using Redlatch, and a migration of a fleet that never lets two processes work
// concurrently. Copy the parts that you need.
package moving

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Work runs under the lock. It must return soon after ctx ends.
type Work func(ctx context.Context) error

// Both runs ship under two locks. It acquires Redlatch's and then calls the before function, which acquires the old
// lock as the program always has. This excludes programs that acquire only one of the two. Only the holder of
// Redlatch's lock, which is renewed, waits for the old lock.
//
// The two locks need different names: redsync and redislock use the name as the key, as Redlatch does.
func Both(ctx context.Context, client *redlatch.Client, before func(context.Context, Work) error, ship Work) error {
	orders := rlock.New(client, "lock:orders:42") // not the key of the old lock
	return orders.Do(ctx, func(ctx context.Context) error {
		return before(ctx, ship) // in the next release: return ship(ctx)
	})
}

// pause is the time between attempts of OneName.
const pause = 100 * time.Millisecond

// OneName acquires the given lock, whose key is also used by a redislock lock or by a redsync lock on a single server.
// While another program holds the old lock, Lock returns ErrWrongType, and OneName retries until ctx ends.
func OneName(ctx context.Context, orders *rlock.Lock) (*rlock.Hold, error) {
	for {
		hold, err := orders.Lock(ctx)
		if !errors.Is(err, redlatch.ErrWrongType) {
			return hold, err
		}
		select { // an old program has the lock
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
