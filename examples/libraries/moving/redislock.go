package moving

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// UnderRedislock runs ship under a bsm/redislock lock if that lock is free. The lease must outlast the work.
func UnderRedislock(ctx context.Context, locks *redislock.Client, name string, ship Work) error {
	lock, err := locks.Obtain(ctx, name, time.Minute, nil) // one attempt
	if err != nil {
		return err
	}
	err = ship(ctx)
	return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
}

// InsteadOfRedislock does the same under a Redlatch lock, which is renewed. done is false if another owner
// has the lock.
func InsteadOfRedislock(ctx context.Context, client *redlatch.Client, name string, ship Work) (done bool, err error) {
	hold, err := rlock.New(client, name).TryLock(ctx)
	if errors.Is(err, redlatch.ErrNotAcquired) {
		return false, nil // redislock.ErrNotObtained
	}
	if err != nil {
		return false, err
	}
	err = ship(hold.Context(ctx)) // ends when the lock is lost
	return err == nil, errors.Join(err, hold.Unlock())
}
