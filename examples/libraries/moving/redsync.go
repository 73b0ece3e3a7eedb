package moving

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// UnderRedsync runs ship under a redsync lock, whose lease must outlast the work.
func UnderRedsync(ctx context.Context, rs *redsync.Redsync, name string, ship Work) error {
	mutex := rs.NewMutex(name, redsync.WithExpiry(time.Minute))
	if err := mutex.LockContext(ctx); err != nil { // 32 attempts, about 5 s
		return err
	}
	err := ship(ctx)
	_, lost := mutex.UnlockContext(context.WithoutCancel(ctx))
	return errors.Join(err, lost)
}

// InsteadOfRedsync does the same under a Redlatch lock, which is renewed. done is false if other owners
// had the lock for five seconds.
func InsteadOfRedsync(ctx context.Context, client *redlatch.Client, name string, ship Work) (done bool, err error) {
	err = rlock.New(client, name).Do(ctx, ship, rlock.WithWait(5*time.Second))
	if errors.Is(err, redlatch.ErrNotAcquired) {
		return false, nil // redsync: ErrFailed or *ErrTaken
	}
	return err == nil, err // redlatch.ErrLost, where redsync has ErrLockAlreadyExpired
}
