package redisconn_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// redigoTo returns the built-in transport with the client's defaults.
func redigoTo(addr string) *redisconn.Redigo {
	return redisconn.NewRedigo(redisconn.Config{
		Dial: func(ctx context.Context) (redis.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return respconn.NewConn(conn, 3*time.Second), nil
		},
		Command:     3 * time.Second,
		Lease:       30 * time.Second,
		DialTimeout: 5 * time.Second,
		ClientName:  "conformance",
	})
}

func newRedigoTo(addr string) func(testing.TB) transport.Transport {
	return func(testing.TB) transport.Transport { return redigoTo(addr) }
}

// noGoroutinesLeft checks for leaks after the subtests. Tests that use it are not parallel.
func noGoroutinesLeft(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { assert.NoError(t, goleak.Find(before)) })
}

// behindProxy is a real server behind a breakable network.
func behindProxy(t *testing.T) transporttest.Harness {
	t.Helper()
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	h := breakable.Behind(proxy, server)
	h.New = newRedigoTo(proxy.Addr())
	return h
}

func TestRedigoConformsBehindABreakableNetwork(t *testing.T) {
	noGoroutinesLeft(t)
	transporttest.Run(t, behindProxy)
}

func TestRedigoConformsOnAServerThatIsKilledAndFrozen(t *testing.T) {
	testlevel.All(t, "a server for each case")
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		h := breakable.Alone(server)
		h.New = newRedigoTo(server.Addr())
		return h
	})
}

func TestRedigoConformsOnTheEmbeddedServer(t *testing.T) {
	testlevel.All(t, "10 s of a processor for what runs on other servers, too")
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Mini(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Harness(proxy)
		h.New, h.Do = newRedigoTo(proxy.Addr()), server.Do
		h.CutSubscribers = func(testing.TB) { server.DropSubscribers() }
		h.Stop, h.Start = breakable.Outage(proxy, server.Do, "FLUSHALL")
		return h
	})
}
