package redistest

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

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

// EachServer runs body as a subtest on a fresh real server and, where all tests run, on a
// fresh in-memory one and on a fresh Valkey (see StartValkey). Under -short it runs on the
// in-memory one alone.
func EachServer(t *testing.T, body func(t *testing.T, target Target)) {
	t.Helper()
	t.Run("server", func(t *testing.T) { body(t, Start(t)) })
	t.Run("miniredis", func(t *testing.T) {
		if !testing.Short() {
			testlevel.All(t, "the same on the in-memory server")
		}
		body(t, Mini(t))
	})
	t.Run("valkey", func(t *testing.T) {
		testlevel.All(t, "the same on Valkey")
		body(t, StartValkey(t))
	})
}
