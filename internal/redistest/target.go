package redistest

import (
	"os"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// valkeyEnv holds the path of a valkey-server that EachServer is to run too.
const valkeyEnv = "REDLATCH_VALKEY"

// Target is what a real server and an in-memory one have in common. Methods
// are safe for concurrent use.
type Target interface {
	// Addr returns the TCP address, host:port.
	Addr() string
	// URL returns the address as a redis:// URL.
	URL() string
	// Dial returns a connection of the test's own, closed with the test.
	Dial(tb testing.TB) redis.Conn
	// Do runs one command and returns its reply; an error ends the test.
	Do(tb testing.TB, cmd string, args ...any) any
}

// EachServer runs body as a subtest on a fresh real server and on a fresh
// in-memory one, and, if the environment variable REDLATCH_VALKEY has the path
// of a valkey-server, on that.
func EachServer(t *testing.T, body func(t *testing.T, target Target)) {
	t.Helper()
	t.Run("server", func(t *testing.T) { body(t, Start(t)) })
	t.Run("miniredis", func(t *testing.T) { body(t, Mini(t)) })
	if path := os.Getenv(valkeyEnv); path != "" {
		t.Run("valkey", func(t *testing.T) { body(t, Start(t, WithBinary(path))) })
	}
}
