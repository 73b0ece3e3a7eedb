package droppedhold

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rsemaphore"
)

type locker interface {
	Lock(context.Context, ...rlock.Option) (*rlock.Hold, error)
}

type job struct {
	*rlock.Lock
	hold *rlock.Hold
}

func blank(ctx context.Context, lock *rlock.Lock, all *rmultilock.Lock, permits *rsemaphore.Expirable, owner codec.Owner) error {
	if _, err := lock.Lock(ctx); err != nil { // want `the hold of lock.Lock is never released`
		return err
	}
	_, err := lock.Resume(ctx, owner, rlock.WithWatchdog(time.Minute)) // want `lock.Resume`
	_, err = all.TryLock(ctx)                                          // want `all.TryLock`
	_, err = permits.Acquire(ctx, 2)                                   // want `permits.Acquire`
	return err
}

func discarded(ctx context.Context, lock *rfencedlock.Lock, l locker, j job) {
	lock.Lock(ctx)    // want `lock.Lock`
	defer l.Lock(ctx) // want `l.Lock`
	go j.TryLock(ctx) // want `j.TryLock`
	j.Lock.Lock(ctx)  // want `j.Lock.Lock`
	_ = j.Lock.Name()
}

func neverUnlocked(ctx context.Context, lock *rlock.Lock, work func(context.Context) error) error {
	hold, err := lock.Lock(ctx, rlock.WithLease(time.Minute)) // want `lock.Lock`
	if err != nil || hold == nil {
		return err
	}
	return errors.Join(work(hold.Context(ctx)), hold.Err())
}

func assignedAndForgotten(ctx context.Context, lock *rfencedlock.Lock) (token int64, err error) {
	var hold *rfencedlock.Hold
	hold, err = lock.Lock(ctx) // want `lock.Lock`
	_ = hold
	return hold.Token(), err
}

// The code below is correct.

var brief = rlock.WithLease(time.Second)

func bounded(ctx context.Context, lock *rlock.Lock, opts ...rlock.Option) error {
	_, _ = lock.TryLock(ctx, rlock.WithLease(time.Hour))
	_, _ = lock.TryLock(ctx, rlock.WithMaxHold(time.Hour))
	_, _ = lock.TryLock(ctx, opts...)
	_, _ = lock.TryLock(ctx, brief)
	_, err := lock.TryLock(ctx, rlock.WithLease(time.Hour))
	return err
}

func released(ctx context.Context, lock *rlock.Lock, permits *rsemaphore.Expirable) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = hold.Unlock() }()
	other, err := lock.Lock(hold.Context(ctx))
	if err == nil {
		err = other.LetExpire()
	}
	permit, err := permits.TryAcquire(ctx, 1)
	if err != nil {
		return err
	}
	return permit.Release()
}

func releasedLater(ctx context.Context, lock, other *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err == nil {
		<-hold.UnlockAsync()
	}
	second, err := other.Lock(ctx)
	if err == nil {
		err = other.UnlockAs(ctx, second.Owner())
	}
	return err
}

func passedOn(ctx context.Context, j *job, keep chan *rlock.Hold) (*rlock.Hold, error) {
	var err error
	if j.hold, err = j.Lock.Lock(ctx); err != nil {
		return nil, err
	}
	sent, err := j.Lock.Lock(ctx)
	keep <- sent
	released, err := j.Lock.Lock(ctx)
	release := released.Unlock
	defer release()
	returned, err := j.Lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return returned, nil
}

func named(ctx context.Context, lock *rlock.Lock) (hold *rlock.Hold, err error) {
	hold, err = lock.Lock(ctx)
	return
}

func returnedCall(ctx context.Context, lock *rlock.Lock) (*rlock.Hold, error) { return lock.Lock(ctx) }

func plainSemaphore(ctx context.Context, permits *rsemaphore.Semaphore) error {
	return permits.Acquire(ctx, 1) // does not return a hold
}
