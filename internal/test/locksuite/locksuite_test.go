package locksuite_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestLocksOnTheBuiltInTransport runs on every kind of server.
func TestLocksOnTheBuiltInTransport(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		t.Parallel()
		locksuite.Run(t, locksuite.OnServer(target, builtIn("redis://"+target.Addr())))
	})
}

// TestLocksOnManagedServices runs on imitations of services that keep commands to themselves.
func TestLocksOnManagedServices(t *testing.T) {
	testlevel.All(t, "six imitations of services")
	t.Parallel()
	for _, service := range diagnosis.Services() {
		t.Run(service.Name, func(t *testing.T) {
			t.Parallel()
			s, url := redistest.StartWithout(t, service.Without)
			d := locksuite.OnServer(s, builtIn(url))
			d.Uncounted = slices.Contains(service.Without, "role") // as doctor predicts
			locksuite.Run(t, d)
		})
	}
}

// builtIn returns what makes built-in transports to the server of a URL.
func builtIn(url string) func(testing.TB) transport.Transport {
	return func(testing.TB) transport.Transport {
		return redisconn.NewRedigo(redisconn.Config{
			Dial: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialURLContext(ctx, url, redis.DialWriteTimeout(3*time.Second))
			},
			Command: 3 * time.Second, Lease: 30 * time.Second, DialTimeout: 5 * time.Second,
		})
	}
}
