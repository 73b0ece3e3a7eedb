package hold

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// locker is a lock of any kind.
type locker interface {
	Name() string
	Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error)
}

// lock returns a lock of the kind that the flags select.
func (o *lockFlags) lock(client *redlatch.Client, name string) locker {
	switch {
	case o.fenced && o.fair:
		return fenced{rfencedlock.NewFair(client, name)}
	case o.fenced:
		return fenced{rfencedlock.New(client, name)}
	case o.fair:
		return rfairlock.New(client, name)
	case o.read:
		return rreadwritelock.New(client, name).Read()
	case o.write:
		return rreadwritelock.New(client, name).Write()
	}
	return rlock.New(client, name)
}

// fenced adapts a fenced lock to locker.
type fenced struct{ lock *rfencedlock.Lock }

func (f fenced) Name() string { return f.lock.Name() }

func (f fenced) Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Lock(ctx, opts...))
}

func (f fenced) TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.TryLock(ctx, opts...))
}

func (f fenced) Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Resume(ctx, owner, opts...))
}

func inner(h *rfencedlock.Hold, err error) (*rlock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// takePermit sets the number of permits and acquires one.
func (o *lockFlags) takePermit(ctx context.Context, client *redlatch.Client) (locker, *rlock.Hold, error) {
	sem := rsemaphore.NewExpirable(client, o.semaphore)
	setting, set := o.connecting(ctx)
	err := o.setPermits(setting, sem)
	set()
	if err != nil {
		return nil, nil, err
	}
	lock := &rlock.Lock{}
	*lock.Internal() = *sem.Internal()
	hold, err := o.take(ctx, lock)
	return lock, hold, err
}

// setPermits sets the number of permits. It leaves another number alone if no permit is taken: that
// may be a counter or a latch.
func (o *lockFlags) setPermits(ctx context.Context, sem *rsemaphore.Expirable) error {
	made, err := sem.TrySetPermits(ctx, o.count)
	if made || err != nil {
		return err
	}
	in, err := sem.Inspect(ctx)
	switch {
	case err != nil:
		return err
	case in.Available+in.Taken == o.count:
		return nil
	case in.Taken == 0 && in.Exists:
		return cli.Errorf(cli.CodeRunFailed, "semaphore %q: the key holds the number %d, and no permit is taken: it may be that of "+
			"something else. If it is this semaphore with another number of permits, delete the key", o.semaphore, in.Available)
	}
	return sem.SetPermits(ctx, o.count)
}

// noPermit returns the *cli.ExitError for a failed acquire of a permit, nil if the error is a
// general one.
func (o *lockFlags) noPermit(err error) error {
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired) && o.count == 1:
		return cli.Errorf(o.conflict, "semaphore %q: its one permit is taken", o.semaphore)
	case errors.Is(err, redlatch.ErrNotAcquired):
		return cli.Errorf(o.conflict, "semaphore %q: all %d permits are taken", o.semaphore, o.count)
	case errors.Is(err, redlatch.ErrWrongType):
		return cli.Errorf(cli.CodeRunFailed, "semaphore %q: the key holds something that is no semaphore, such as a lock of this name", o.semaphore)
	}
	return nil
}
