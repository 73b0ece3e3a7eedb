package redistest

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/embedded"
)

// MiniServer is an in-memory server for one test, on a loopback port and
// through in-memory pipes, with the faults of package embedded.
type MiniServer struct {
	*embedded.Server
	pool *redis.Pool
}

// Mini starts an in-memory server for this test. It ends with the test. The
// options are those of package embedded: WithInProcess for tests on fake time.
func Mini(tb testing.TB, opts ...embedded.Option) *MiniServer {
	tb.Helper()
	srv, err := embedded.Start(opts...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s := &MiniServer{Server: srv}
	s.pool = &redis.Pool{MaxIdle: 1, TestOnBorrow: ping, DialContext: srv.Dial}
	tb.Cleanup(func() {
		_ = s.pool.Close() // its connections end with the server anyway
		srv.Close()
	})
	return s
}

// Dial returns a connection of the test's own, in memory, with no read timeout.
// It is closed with the test. It is for one goroutine, as redigo's connections
// are. For a dial function see MiniServer.Server.
func (s *MiniServer) Dial(tb testing.TB) redis.Conn {
	tb.Helper()
	c, err := s.Server.Dial(context.Background())
	return closedWith(tb, c, err)
}

// Do runs one command on a connection of the package's own and returns its
// reply. An error reply ends the test. Safe for concurrent use.
func (s *MiniServer) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	return poolDo(tb, s.pool, cmd, args...)
}
