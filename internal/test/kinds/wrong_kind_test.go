package kinds_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// object is a kind of lock, semaphore or latch: put makes one that is taken, try takes one.
type object struct {
	kind string // the words for it in errors
	put  func(ctx context.Context, c *redlatch.Client, name string) error
	try  func(ctx context.Context, c *redlatch.Client, name string) error
}

// locked is the object of a kind of lock.
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

// excluded are the kinds that a lock of lockKind waits for, as for another lock: all hashes.
func excluded(caller, there object) bool {
	return caller.kind == there.kind || caller.kind == lockKind && there.kind == readWriteKind
}

// A name that has another kind of object is refused with the words for that object.
func TestErrorNamesTheKindThatANameHas(t *testing.T) {
	for has, there := range objects {
		for is, caller := range objects {
			t.Run(is+" on "+has, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Mini(t, embedded.WithInProcess())
					near, far := inProcess(t, srv), inProcess(t, srv)
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

func inProcess(t *testing.T, srv *redistest.MiniServer) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(srv.Server.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

const other = "01010101-0000-0000-0000-000000000000:7"

// holdByHand and freeByHand are the commands that hold and free "k" for each kind.
var holdByHand, freeByHand = map[string][]string{
	"plain": {"HSET", "k", other, "1"},
	"owner": {"HSET", "k", other, "1"},
	"fair":  {"HSET", "k", other, "1"},
	"read":  {"HSET", "k", "mode", "write", other + ":write", "1"},
	"write": {"HSET", "k", "mode", "write", other + ":write", "1"},
	"count": {"SET", "k", "0"},
}, map[string][]string{"count": {"SET", "k", "1"}}

// acquire acquires "k" with a client.
func acquire(ctx context.Context, c *redlatch.Client, kind string) (err error) {
	switch kind {
	case "plain":
		_, err = rlock.New(c, "k").Lock(ctx)
	case "owner":
		_, err = rlock.New(c, "k").Lock(ctx, rlock.WithOwner(redlatch.NewOwner(uuid.New(), 1)))
	case "fair":
		_, err = rfairlock.New(c, "k").Lock(ctx)
	case "read":
		_, err = rreadwritelock.New(c, "k").Read().Lock(ctx)
	case "write":
		_, err = rreadwritelock.New(c, "k").Write().Lock(ctx)
	case "count":
		err = rsemaphore.New(c, "k").Acquire(ctx, 1)
	}
	return err
}

// A server may have room for a client's first connection only.
func TestWaitersThatCannotSubscribePoll(t *testing.T) {
	for kind, held := range holdByHand {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				do := func(command []string) {
					srv.Do(t, command[0], redis.Args{}.AddFlat(command[1:])...)
				}
				var dials atomic.Int64
				c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
					if dials.Add(1) > 1 {
						return nil, errors.New("no room")
					}
					return srv.Server.Dial(ctx)
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				do(held)
				ended := make(chan error, 1)
				go func() { ended <- acquire(t.Context(), c, kind) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Empty(t, ended)
				if free := freeByHand[kind]; free != nil {
					do(free)
				} else {
					do([]string{"DEL", "k"})
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Len(t, ended, 1)
				require.NoError(t, <-ended)
			})
		})
	}
}
