package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/internal/redistest/breakable"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// redigoTo makes the built-in transport with the client's defaults.
func redigoTo(addr string) *core.Redigo {
	return core.NewRedigo(core.RedigoConfig{
		Dial: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr, redis.DialWriteTimeout(3*time.Second))
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

// noGoroutinesLeft checks at the end of the test, when its subtests are over.
// Tests that use it do not run beside others.
func noGoroutinesLeft(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { assert.NoError(t, goleak.Find(before)) })
}

// behindProxy is a real server behind a network that can be broken in every way.
func behindProxy(t *testing.T) transporttest.Harness {
	t.Helper()
	t.Parallel()
	server := redistest.Start(t)
	h := proxied(redistest.NewProxy(t, server.Addr()))
	h.Do = server.Do
	h.Stop = func(testing.TB) { server.Kill() }
	h.Start = func(testing.TB) { server.Restart() }
	h.Forbid = forbid(server)
	h.Replica = breakable.Replica(server)
	return h
}

// proxied is what a proxy can do whatever server is behind it.
func proxied(proxy *redistest.Proxy) transporttest.Harness {
	h := breakable.Harness(proxy)
	h.New = newRedigoTo(proxy.Addr())
	return h
}

func TestRedigoConformsBehindABreakableNetwork(t *testing.T) {
	noGoroutinesLeft(t)
	transporttest.Run(t, behindProxy)
}

func kill(server *redistest.Server, kind string) func(testing.TB) {
	return func(tb testing.TB) {
		tb.Helper()
		server.KillClients(tb, kind)
	}
}

func forbid(server *redistest.Server) func(testing.TB, string) {
	return func(tb testing.TB, cmd string) {
		tb.Helper()
		server.Do(tb, "ACL", "SETUSER", "default", "-"+cmd)
	}
}

func TestRedigoConformsOnAServerThatIsKilledAndFrozen(t *testing.T) {
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		return transporttest.Harness{
			New:            newRedigoTo(server.Addr()),
			Do:             server.Do,
			CutConnections: kill(server, "normal"),
			CutSubscribers: kill(server, "pubsub"),
			Freeze:         func(testing.TB) { server.Pause() },
			Thaw:           func(testing.TB) { server.Resume() },
			Stop:           func(testing.TB) { server.Shutdown() },
			Start:          func(testing.TB) { server.Restart() },
			Forbid:         forbid(server),
			UrgentFirst:    true,
		}
	})
}

func TestRedigoConformsOnTheEmbeddedServer(t *testing.T) {
	noGoroutinesLeft(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Mini(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := proxied(proxy)
		h.Do = server.Do
		h.CutSubscribers = func(testing.TB) { server.DropSubscribers() }
		h.Stop = func(testing.TB) {
			proxy.Refuse(true)
			proxy.Reset()
		}
		h.Start = func(tb testing.TB) {
			tb.Helper()
			server.Do(tb, "FLUSHALL")
			proxy.Refuse(false)
		}
		return h
	})
}
