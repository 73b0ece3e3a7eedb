package lockagain

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

type job struct {
	ctx         context.Context
	lock, other *rlock.Lock
}

func work(ctx context.Context) error { return ctx.Err() }

func insideDo(ctx context.Context, j *job, all *rmultilock.Lock, rw *rreadwritelock.Lock) {
	_ = j.lock.Do(ctx, func(held context.Context) error {
		hold, err := j.lock.Lock(ctx) // want `j.lock.Lock waits for the hold of line 23: use the context that Do passes`
		if err != nil {
			return err
		}
		return hold.Unlock()
	})
	_ = all.Do(ctx, func(held context.Context) error {
		return all.Do(context.Background(), work) // want `all.Do waits`
	})
	_ = rw.Write().Do(ctx, func(held context.Context) error {
		return j.lock.Do(held, func(context.Context) error {
			return rw.Write().Do(ctx, work) // want `rw.Write\(\).Do waits for the hold`
		})
	})
}

func afterHold(ctx context.Context, j *job) error {
	hold, err := j.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	if err := work(hold.Context(ctx)); err != nil {
		return err
	}
	for range 3 {
		if err := j.lock.Do(ctx, work); err != nil { // want `j.lock.Do waits for the hold of line 41: use hold.Context`
			return err
		}
	}
	return nil
}

func afterTryLock(ctx context.Context, lock *rlock.Lock) {
	hold, err := lock.TryLock(ctx)
	if errors.Is(err, redlatch.ErrNotAcquired) {
		return
	}
	if err != nil {
		return
	}
	again, err := lock.Lock(ctx) // want `lock.Lock waits for the hold`
	_, _ = again.Unlock(), hold.Unlock()
}

func withoutError(lock *rlock.Lock) {
	hold, _ := lock.Lock(context.Background())
	second, _ := lock.TryLock(context.Background()) // want `lock.TryLock fails because of the hold of line 70: use hold.Context`
	_, _ = second.Unlock(), hold.Unlock()
}

// The code below is correct.

func proven(ctx context.Context, j *job) error {
	_ = j.lock.Do(ctx, func(held context.Context) error {
		_ = j.lock.Do(held, work)
		_ = j.other.Do(held, work)
		go j.lock.Do(ctx, work)
		later := func() error { return j.lock.Do(j.ctx, work) }
		_ = later
		return nil
	})
	hold, err := j.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	_ = j.lock.Do(hold.Context(ctx), work)
	_ = j.other.Do(ctx, work)
	go func() { _ = j.lock.Do(ctx, work) }()
	ctx = hold.Context(ctx)
	return j.lock.Do(ctx, work)
}

func unlocked(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if err := hold.Unlock(); err != nil {
		return err
	}
	return lock.Do(ctx, work)
}

func tryThenWait(ctx context.Context, lock *rlock.Lock) (*rlock.Hold, error) {
	hold, err := lock.TryLock(ctx)
	if errors.Is(err, redlatch.ErrNotAcquired) {
		hold, err = lock.Lock(ctx)
	}
	return hold, err
}

func tryThenDo(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.TryLock(ctx)
	if err == nil {
		return hold.Unlock()
	}
	return lock.Do(ctx, work)
}

func otherError(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.TryLock(ctx)
	if err := work(ctx); err != nil {
		return err
	}
	defer func() { _ = hold.Unlock() }()
	return errors.Join(err, lock.Do(ctx, work))
}

func passedOn(ctx context.Context, lock *rlock.Lock, release func(*rlock.Hold)) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	release(hold)
	return lock.Do(ctx, work)
}

func otherLock(ctx context.Context, lock *rlock.Lock, next func() *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	lock = next()
	return lock.Do(ctx, work)
}

func expired(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Lock(ctx, rlock.WithLease(time.Second))
	if err != nil {
		return err
	}
	<-hold.Context(ctx).Done()
	return errors.Join(lock.Do(ctx, work), hold.Unlock())
}

func waitsInTheOpen(ctx context.Context, lock *rlock.Lock) (err error) {
	hold, _ := lock.TryLock(ctx)
	if hold == nil {
		hold, err = lock.Lock(ctx)
	}
	return errors.Join(err, hold.Unlock())
}

func withNewContext(ctx context.Context, lock *rlock.Lock, again bool) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	if again {
		ctx = hold.Context(ctx)
		err = lock.Do(ctx, work)
	}
	return err
}

func afterLoss(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	<-hold.Context(ctx).Done()
	return lock.Do(ctx, work)
}

func ifLost(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	if hold.Err() != nil {
		return lock.Do(ctx, work)
	}
	return nil
}

func releasedByClosure(ctx context.Context, lock *rlock.Lock) error {
	var hold *rlock.Hold
	release := func() { _ = hold.Unlock() }
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	release()
	return lock.Do(ctx, work)
}

func permits(ctx context.Context, s *rsemaphore.Expirable) error {
	hold, err := s.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer hold.Release()
	return s.Do(ctx, 2, func(held context.Context) error { return s.Do(held, 1, work) })
}

func releasedByGoroutine(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	go func() { _ = hold.Unlock() }()
	return lock.Do(ctx, work)
}

type store struct{ client *redlatch.Client }

func (s store) Lock(ctx context.Context, name string) (*rlock.Hold, error) {
	return rlock.New(s.client, name).Lock(ctx)
}

func wrapped(ctx context.Context, s store) error {
	hold, err := s.Lock(ctx, "one")
	if err != nil {
		return err
	}
	defer hold.Unlock()
	second, err := s.Lock(ctx, "two")
	if err != nil {
		return err
	}
	return second.Unlock()
}
