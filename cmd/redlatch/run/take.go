package run

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// leastConnect is how long connecting may take, however short --wait is.
	leastConnect = 2 * time.Second
	// lookAfter is how long a lock is waited for before it is looked at.
	lookAfter = 250 * time.Millisecond
)

// connecting returns a context for connecting: with --wait, or --try, it does not take much
// longer than the lock is waited for.
func (o *runOptions) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.bounded || o.try {
		return context.WithTimeout(ctx, max(o.wait, leastConnect))
	}
	return context.WithCancel(ctx)
}

// acquireOf takes the lock. A key that is no lock looks held, for ever: when the lock is not
// had soon, or not had at all, that is looked at, and the error is an *inspect.NotLock.
func (o *runOptions) acquireOf(ctx context.Context, srv *connect.Server, lock locker) (*rlock.Hold, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if inspect.Pause(ctx, lookAfter) != nil {
			return // the lock is had, or is not to be had
		}
		if other := notLock(ctx, srv, lock.Name()); other != nil {
			cancel(other)
		}
	}()
	hold, err := o.take(ctx, lock)
	cancel(nil)
	<-looked
	var other *inspect.NotLock
	switch {
	case err == nil:
		return hold, nil
	case errors.As(context.Cause(ctx), &other):
		return nil, other
	case errors.Is(err, redlatch.ErrNotAcquired):
		if other := notLock(context.WithoutCancel(ctx), srv, lock.Name()); other != nil {
			return nil, other
		}
	}
	return nil, err
}

// notLock returns what a key is that is no lock, nil when it may be one or may not be looked
// at.
func notLock(ctx context.Context, srv *connect.Server, name string) error {
	var other *inspect.NotLock
	if errors.As(inspect.CheckIsLock(ctx, srv, name), &other) {
		return other
	}
	return nil
}
