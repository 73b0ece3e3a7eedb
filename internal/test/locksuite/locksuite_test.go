package locksuite_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestLocksOnTheBuiltInTransport runs on every kind of server.
func TestLocksOnTheBuiltInTransport(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		t.Parallel()
		locksuite.Run(t, locksuite.OnServer(target, func(testing.TB) transport.Transport {
			return redisconn.NewRedigo(redisconn.Config{
				Dial: func(ctx context.Context) (redis.Conn, error) {
					return redis.DialContext(ctx, "tcp", target.Addr(), redis.DialWriteTimeout(3*time.Second))
				},
				Command: 3 * time.Second, Lease: 30 * time.Second, DialTimeout: 5 * time.Second,
			})
		}))
	})
}
