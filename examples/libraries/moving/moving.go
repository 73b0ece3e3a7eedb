// Package moving has what docs/coming-from.md shows: programs with the locks of redsync, bsm/redislock
// and rueidislock, the same with Redlatch, and how a fleet moves from one to the other without a time in
// which two processes are inside. Copy what you need.
package moving

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Work is what a program does while it has the lock. It returns soon after ctx ends.
type Work func(ctx context.Context) error

// Both does ship under two locks: Redlatch's, and inside it the old one, which before takes as the
// program did so far. It excludes programs that take the old lock alone, and those that take
// Redlatch's alone. Redlatch's is renewed while the old one is waited for, and only the process that
// has it waits for the old one.
//
// The two locks have different names: redsync and redislock use the name as the key, as Redlatch does.
func Both(ctx context.Context, client *redlatch.Client, before func(context.Context, Work) error, ship Work) error {
	orders := rlock.New(client, "lock:orders:42") // not the key of the old lock
	return orders.Do(ctx, func(ctx context.Context) error {
		return before(ctx, ship) // the release after this one: return ship(ctx)
	})
}

// pause is how long OneName waits before it looks again whether the old lock is free.
const pause = 100 * time.Millisecond

// OneName takes orders, which has the key of a lock of redsync on one server or of redislock. While
// a program has the old lock, the key is no lock of Redlatch: OneName tries again, until ctx ends.
func OneName(ctx context.Context, orders *rlock.Lock) (*rlock.Hold, error) {
	for {
		hold, err := orders.Lock(ctx)
		if !errors.Is(err, redlatch.ErrWrongType) {
			return hold, err
		}
		select { // an old program has it
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
