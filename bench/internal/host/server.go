// Package host runs a Redis server and other processes on chosen processors.
package host

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Server is a Redis server without persistence.
type Server struct{ *redistest.Server }

// StartServer starts a server that runs until tb ends.
func StartServer(tb testing.TB, p Placement) Server {
	tb.Helper()
	return Server{redistest.Start(tb, redistest.WithProcessors(p.Server()...), redistest.WithArgs("--maxclients", "20000"))}
}

// Clear deletes all keys and cached scripts.
func (s Server) Clear(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "FLUSHALL")
	s.Do(tb, "SCRIPT", "FLUSH")
}

// Info returns the server's statistics.
func (s Server) Info(tb testing.TB) Info {
	tb.Helper()
	now := time.Now()
	text, _ := redis.String(s.Do(tb, "INFO", "everything"), nil) // on failure, all counts are 0
	info := parseInfo(text)
	info.At, info.machine = now, readMachine()
	return info
}
