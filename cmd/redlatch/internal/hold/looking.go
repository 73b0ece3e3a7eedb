package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const (
	// leastConnect is the minimum time for connecting.
	leastConnect = 2 * time.Second
	// lookAfter is how long to wait for a lock before its key is inspected.
	lookAfter = 250 * time.Millisecond
	lookLimit = 500 * time.Millisecond
	// replicaAfter is how long a replica then has to become the master.
	replicaAfter = 3 * time.Second
	// sayAfter is how long a nested command waits silently after that.
	sayAfter = time.Second
)

func (o *lockFlags) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.bounded || o.try {
		return context.WithTimeout(ctx, max(o.wait, leastConnect))
	}
	return context.WithCancel(ctx)
}

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

// whileLooking calls take. If take fails or is slow, it also inspects the key and the server, because a key that is
// not a lock looks like a lock held forever, and replicas do not grant locks.
func (o *lockFlags) whileLooking(ctx context.Context, srv *connect.Server, name string, take func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	var why, suspected error
	go func() {
		defer close(looked)
		if why, suspected = o.look(ctx, srv, name); why != nil {
			cancel(why)
		} else if len(outer()) > 0 && pauses(ctx, sayAfter) {
			cli.Messagef(os.Stderr, "%s", o.Hint(o.nested(name)))
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
	case why == nil && (errors.Is(err, redlatch.ErrNotAcquired) || errors.Is(err, redlatch.ErrWrongType) ||
		transport.IsCode(err, "READONLY")):
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
		why = o.hopeless(after, srv, name)
		stop()
	}
	return cmp.Or(why, err)
}

// nested describes a wait inside a hold, which nobody else may be able to end.
func (o *lockFlags) nested(name string) string {
	what := "lock"
	if o.permits != "" {
		what = "a permit of"
	}
	return fmt.Sprintf("waiting for %s %q inside %q; `redlatch status %s` shows its holder", what, name, os.Getenv(envLock), inspect.Args(name))
}

// look inspects the key and the server. A replica may soon become the master, so it is only suspected at first.
func (o *lockFlags) look(ctx context.Context, srv *connect.Server, name string) (why, suspected error) {
	if !pauses(ctx, lookAfter) {
		return nil, nil // take has returned
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

func pauses(ctx context.Context, d time.Duration) bool { return inspect.Pause(ctx, d) == nil }

// hopeless returns the reason why the lock cannot be acquired on this server, or nil.
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
