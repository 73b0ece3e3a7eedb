package redistest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ownName is the client name of the package's own connections.
const ownName = "redistest"

// serverInfo is what a server says of itself.
type serverInfo struct {
	name    string // redis, valkey, …
	version string
	pid     int
}

// Dial returns a connection of the test's own, logged in, with no read timeout.
// It is closed with the test. It is for one goroutine, as redigo's connections
// are.
func (s *Server) Dial(tb testing.TB) redis.Conn {
	tb.Helper()
	c, err := redis.Dial("tcp", s.Addr(), s.dialOptions()...)
	return closedWith(tb, c, err)
}

// Do runs one command on a connection of the package's own and returns its
// reply as redigo gives it. An error reply ends the test. Safe for concurrent
// use.
func (s *Server) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	return poolDo(tb, s.pool, cmd, args...)
}

// Name returns the server's kind: "redis", "valkey" or what else it calls
// itself.
func (s *Server) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.name
}

// Version returns the server's version, such as "7.0.15". For servers other
// than Redis it is their own, not the version of Redis they claim to be.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.version
}

// BytesSent returns how many bytes the server has sent to clients (INFO stats). CONFIG RESETSTAT sets
// it to zero.
func (s *Server) BytesSent(tb testing.TB) int {
	tb.Helper()
	_, after, _ := strings.Cut(s.text(tb, "INFO", "stats"), "total_net_output_bytes:")
	number, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.Atoi(number)
	if err != nil {
		tb.Fatalf("redistest: total_net_output_bytes: %v", err)
	}
	return n
}

// CommandStats returns how often each command ran, by its name in lower case,
// with subcommands as "client|list", commands inside scripts included (INFO
// commandstats). The package's own are among them; CONFIG RESETSTAT sets all
// to zero.
func (s *Server) CommandStats(tb testing.TB) map[string]int64 {
	tb.Helper()
	stats := map[string]int64{}
	for line := range strings.Lines(s.text(tb, "INFO", "commandstats")) {
		name, values, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(values, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			tb.Fatalf("redistest: commandstats line %q: %v", line, err)
		}
		stats[name] = n
	}
	return stats
}

// KillClients ends all connections of a kind, "normal" or "pubsub", but for the
// one that asks (CLIENT KILL TYPE), and returns how many there were.
func (s *Server) KillClients(tb testing.TB, kind string) int {
	tb.Helper()
	n, err := redis.Int(s.Do(tb, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"), nil)
	if err != nil {
		tb.Fatalf("redistest: kill %s clients: %v", kind, err)
	}
	return n
}

// Clients returns how many connections the server has, without the package's
// own (CLIENT LIST). Those made with Dial count.
func (s *Server) Clients(tb testing.TB) int {
	tb.Helper()
	n := 0
	for line := range strings.Lines(s.text(tb, "CLIENT", "LIST")) {
		if !strings.Contains(line, " name="+ownName+" ") {
			n++
		}
	}
	return n
}

// Channels returns the channels that have subscribers, in no order (PUBSUB
// CHANNELS).
func (s *Server) Channels(tb testing.TB) []string {
	tb.Helper()
	names, err := redis.Strings(s.Do(tb, "PUBSUB", "CHANNELS"), nil)
	if err != nil {
		tb.Fatalf("redistest: list channels: %v", err)
	}
	return names
}

func (s *Server) text(tb testing.TB, cmd string, args ...any) string {
	tb.Helper()
	text, err := redis.String(s.Do(tb, cmd, args...), nil)
	if err != nil {
		tb.Fatalf("redistest: %s: %v", cmd, err)
	}
	return text
}

// askInfo asks the server for its name, version and process.
func (s *Server) askInfo(ctx context.Context) (serverInfo, error) {
	c, err := s.dialOwn(ctx)
	if err != nil {
		return serverInfo{}, err
	}
	defer func() { _ = c.Close() }() // the answer is there or it is not
	if err := ping(c, time.Time{}); err != nil {
		return serverInfo{}, err // such as LOADING
	}
	text, err := redis.String(c.Do("INFO", "server"))
	if err != nil {
		return serverInfo{}, err
	}
	return parseInfo(text)
}

// parseInfo reads the answer to INFO server. Descendants of Redis state the
// version they are compatible with as redis_version, and their own by name.
func parseInfo(text string) (serverInfo, error) {
	fields := map[string]string{"server_name": "redis"}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	pid, err := strconv.Atoi(fields["process_id"])
	if err != nil {
		return serverInfo{}, fmt.Errorf("INFO without a process id: %w", err)
	}
	info := serverInfo{name: fields["server_name"], pid: pid}
	info.version = fields[info.name+"_version"]
	if info.version == "" {
		info.version = fields["redis_version"]
	}
	return info, nil
}

func (s *Server) dialOptions() []redis.DialOption {
	return []redis.DialOption{
		redis.DialConnectTimeout(ioTimeout),
		redis.DialWriteTimeout(ioTimeout),
		redis.DialPassword(s.cfg.password),
	}
}

// dialOwn dials a connection that Clients does not count.
func (s *Server) dialOwn(ctx context.Context) (redis.Conn, error) {
	opts := append(s.dialOptions(), redis.DialReadTimeout(ioTimeout), redis.DialClientName(ownName))
	return redis.DialContext(ctx, "tcp", s.Addr(), opts...)
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

// logTail returns the end of the server's log.
func (s *Server) logTail() string {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const keep = 2000
	return string(bytes.TrimSpace(log[max(0, len(log)-keep):]))
}

// ping tells whether an idle connection still works.
func ping(c redis.Conn, _ time.Time) error {
	_, err := c.Do("PING")
	return err
}

// closedWith hands out a dialled connection that is closed with the test.
func closedWith(tb testing.TB, c redis.Conn, err error) redis.Conn {
	tb.Helper()
	if err != nil {
		tb.Fatalf("redistest: dial: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() }) // may be closed or broken by then
	return c
}

// poolDo runs one command on a connection of pool.
func poolDo(tb testing.TB, pool *redis.Pool, cmd string, args ...any) any {
	tb.Helper()
	c := pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	reply, err := c.Do(cmd, args...)
	if err != nil {
		tb.Fatalf("redistest: %s %v: %v", cmd, args, err)
	}
	return reply
}
