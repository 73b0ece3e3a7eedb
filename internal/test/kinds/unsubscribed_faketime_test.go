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
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

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
