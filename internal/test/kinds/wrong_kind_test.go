package kinds_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// object is a kind of lock, semaphore or latch.
type object struct {
	kind string // in errors
	put  func(ctx context.Context, c *redlatch.Client, name string) error
	try  func(ctx context.Context, c *redlatch.Client, name string) error
}

func locked[H any](kind string, try func(ctx context.Context, c *redlatch.Client, name string) (H, error)) object {
	take := func(ctx context.Context, c *redlatch.Client, name string) error { return errOf(try(ctx, c, name)) }
	return object{kind, take, take}
}

func errOf[T any](_ T, err error) error { return err }

const (
	lockKind, readWriteKind, numberKind = "a plain, fair or fenced lock", "a read/write lock", "a semaphore or a count-down latch"
)

var objects = map[string]object{
	"plain": locked(lockKind, func(ctx context.Context, c *redlatch.Client, name string) (*rlock.Hold, error) {
		return rlock.New(c, name).TryLock(ctx)
	}),
	"fair": locked(lockKind, func(ctx context.Context, c *redlatch.Client, name string) (*rlock.Hold, error) {
		return rfairlock.New(c, name).TryLock(ctx)
	}),
	"fenced": locked(lockKind, func(ctx context.Context, c *redlatch.Client, name string) (*rfencedlock.Hold, error) {
		return rfencedlock.New(c, name).TryLock(ctx)
	}),
	"multi": locked(lockKind, func(ctx context.Context, c *redlatch.Client, name string) (*rmultilock.Hold, error) {
		return rmultilock.New(c, name+"-other", name).TryLock(ctx)
	}),
	"read": locked(readWriteKind, func(ctx context.Context, c *redlatch.Client, name string) (*rlock.Hold, error) {
		return rreadwritelock.New(c, name).Read().TryLock(ctx)
	}),
	"write": locked(readWriteKind, func(ctx context.Context, c *redlatch.Client, name string) (*rlock.Hold, error) {
		return rreadwritelock.New(c, name).Write().TryLock(ctx)
	}),
	"permits": {
		kind: numberKind,
		put: func(ctx context.Context, c *redlatch.Client, name string) error {
			return errOf(rsemaphore.NewExpirable(c, name).TrySetPermits(ctx, 1))
		},
		try: func(ctx context.Context, c *redlatch.Client, name string) error {
			return errOf(rsemaphore.NewExpirable(c, name).TryAcquire(ctx, 1))
		},
	},
	"semaphore": {
		kind: numberKind,
		put: func(ctx context.Context, c *redlatch.Client, name string) error {
			return errOf(rsemaphore.New(c, name).TrySet(ctx, 1, 0))
		},
		try: func(ctx context.Context, c *redlatch.Client, name string) error {
			return rsemaphore.New(c, name).TryAcquire(ctx, 1)
		},
	},
	"latch": {
		kind: numberKind,
		put: func(ctx context.Context, c *redlatch.Client, name string) error {
			return errOf(rlatch.New(c, name).TrySet(ctx, 1))
		},
		try: func(ctx context.Context, c *redlatch.Client, name string) error {
			return rlatch.New(c, name).Wait(ctx)
		},
	},
}

// excluded reports whether the caller waits: to a plain lock, every hash may be a lock.
func excluded(caller, there object) bool {
	return caller.kind == there.kind || caller.kind == lockKind && there.kind == readWriteKind
}

func TestErrorNamesTheKindThatANameHas(t *testing.T) {
	for has, there := range objects {
		for is, caller := range objects {
			t.Run(is+" on "+has, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Mini(t, embedded.WithInProcess())
					near, far := callers.InProcess(t, srv), callers.InProcess(t, srv)
					require.NoError(t, there.put(t.Context(), far, "job"))
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					err := caller.try(ctx, near, "job")
					if excluded(caller, there) {
						require.NotErrorIs(t, err, redlatch.ErrWrongType)
						return
					}
					require.ErrorIs(t, err, redlatch.ErrWrongType)
					require.ErrorContains(t, err, "redlatch: wrong kind of key: ")
					require.ErrorContains(t, err, ": it is "+there.kind)
				})
			})
		}
	}
}

// A server may have room for a client's first connection only.
func TestWaitersThatCannotSubscribePoll(t *testing.T) {
	for kind, pair := range waitable {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				var dials atomic.Int64
				c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
					if dials.Add(1) > 1 {
						return nil, errors.New("no room")
					}
					return srv.Server.Dial(ctx)
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				hold, wait := pair(prepared(t, srv), c)
				leave, err := hold(t.Context())
				require.NoError(t, err)
				came := make(chan error, 1)
				go func() { came <- errOf(wait(t.Context())) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Empty(t, came)
				require.NoError(t, leave())
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Len(t, came, 1)
				require.NoError(t, <-came)
			})
		})
	}
}
