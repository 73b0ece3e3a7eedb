package hold

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const (
	// leastConnect is how long connecting may take, however short --wait is.
	leastConnect = 2 * time.Second
	// lookAfter is how long a lock is waited for before it is looked at.
	lookAfter = 250 * time.Millisecond
	// lookLimit bounds a look after the wait.
	lookLimit = 500 * time.Millisecond
	// replicaAfter is for how long after that a replica may become the master.
	replicaAfter = 3 * time.Second
)

// connecting returns a context for connecting: with --wait, or --try, it does not take much
// longer than the lock is waited for.
func (o *lockFlags) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.bounded || o.try {
		return context.WithTimeout(ctx, max(o.wait, leastConnect))
	}
	return context.WithCancel(ctx)
}

// lockOrPermit takes the lock, or a permit.
func (o *lockFlags) lockOrPermit(
	ctx context.Context, srv *connect.Server, client *redlatch.Client, name string,
) (lock locker, hold *rlock.Hold, err error) {
	take := func(ctx context.Context) error {
		lock = o.lock(client, name)
		hold, err = o.take(ctx, lock)
		return err
	}
	if o.permits != "" {
		take = func(ctx context.Context) error {
			lock, hold, err = o.takePermit(ctx, client)
			return err
		}
	}
	err = o.whileLooking(ctx, srv, name, take)
	return lock, hold, err
}

// whileLooking takes a lock. A key that is no lock looks held, for ever, and a replica gives no
// lock away: when the lock is not had soon, or not had at all, that is looked at, and the error is
// an *inspect.NotLock or a *connect.OnReplica.
func (o *lockFlags) whileLooking(ctx context.Context, srv *connect.Server, name string, take func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	var why, suspected error
	go func() {
		defer close(looked)
		if why, suspected = o.look(ctx, srv, name); why != nil {
			cancel(why)
		}
	}()
	err := take(ctx)
	cancel(nil)
	<-looked
	switch {
	case err == nil:
		return nil
	case why == nil && errors.Is(err, redlatch.ErrNotSent):
		why = suspected
	case why == nil && asksForALook(err):
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
		why = o.hopeless(after, srv, name)
		stop()
	}
	return cmp.Or(why, err)
}

// asksForALook reports whether a lock was refused for a reason that a look at the key, or at the
// server, may explain.
func asksForALook(err error) bool {
	var refusal *transport.ServerError
	return errors.Is(err, redlatch.ErrNotAcquired) || errors.Is(err, redlatch.ErrWrongType) ||
		errors.As(err, &refusal) && refusal.HasCode("READONLY")
}

// look returns why a lock that is waited for cannot be had, nil when there is no such reason by
// the end of ctx. A replica may become the master soon, in a failover: one that is waited for gets
// the time for that, and is suspected when ctx ends before.
func (o *lockFlags) look(ctx context.Context, srv *connect.Server, name string) (why, suspected error) {
	if !pauses(ctx, lookAfter) {
		return nil, nil // the lock is had, or is not to be had
	}
	why = o.hopeless(ctx, srv, name)
	var on *connect.OnReplica
	if !o.try && errors.As(why, &on) {
		if !pauses(ctx, replicaAfter) {
			return nil, why
		}
		why = o.hopeless(ctx, srv, name)
	}
	return why, nil
}

// pauses waits for d, and reports whether that was over before ctx.
func pauses(ctx context.Context, d time.Duration) bool { return inspect.Pause(ctx, d) == nil }

// hopeless returns why the lock cannot be had here, nil when it may be had, or may not be looked
// at.
func (o *lockFlags) hopeless(ctx context.Context, srv *connect.Server, name string) error {
	var other *inspect.NotLock
	if o.permits == "" && errors.As(inspect.CheckIsLock(ctx, srv, name), &other) {
		return other
	}
	var on *connect.OnReplica
	if ctx.Err() == nil && errors.As(srv.NeedMaster(ctx), &on) {
		return on
	}
	return nil
}
