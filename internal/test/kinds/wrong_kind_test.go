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
)

// excluded reports whether the caller waits for the existing object instead of returning an error. A plain lock also
// waits if the key is a hash of another kind of lock.
func excluded(caller, there object) bool {
	return caller.kind == there.kind || caller.kind == lockKind && there.kind == readWriteKind
}

func TestWrongKindErrorNamesExistingKind(t *testing.T) {
	for _, pair := range pairs(t, objects, objects) {
		there, caller := objects[pair[0]], objects[pair[1]]
		t.Run(pair[1]+" on "+pair[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				near, far := callers.InProcess(t, srv), callers.InProcess(t, srv)
				leave, err := there.hold(far, "job")(t.Context())
				require.NoError(t, err)
				defer func() { require.NoError(t, leave()) }()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err = caller.wait(near, "job")(ctx)
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

// The server accepts only the client's first connection.
func TestWaitersPollWhenSubscribeFails(t *testing.T) {
	for kind, o := range objects {
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
				leave, err := o.hold(callers.InProcess(t, srv), "k")(t.Context())
				require.NoError(t, err)
				came := make(chan error, 1)
				go func() { came <- errOf(o.wait(c, "k")(t.Context())) }()
				time.Sleep(20 * time.Second)
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
