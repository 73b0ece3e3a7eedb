package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/testlevel"
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

// WithAppendOnly makes the server write each change to its append-only file, as it
// is made and before it is answered. Its data then outlives Kill and Restart, and
// Expiries can be asked. It needs Redis 7 or Valkey.
func WithAppendOnly() Option { return WithArgs("--appendonly", "yes", "--appendfsync", "no") }

// Expiries returns when keys expire by the clock of this machine, to the millisecond: for
// each key the last moment that the server has set, whether the key still exists or not. It
// reads the append-only file, so it also works for a server that is frozen or dead, and
// sends nothing to a running one. Only servers started with WithAppendOnly have that.
//
// A server writes the file before it sends the replies. A change that is missing there was
// not acknowledged to any client.
func (s *Server) Expiries(tb testing.TB) map[string]time.Time {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 {
		err = errors.New("there is none; start the server with WithAppendOnly")
	}
	expiries := map[string]time.Time{}
	for _, name := range files { // in their order: names end in numbers, and nothing rewrites them
		var text []byte
		if text, err = os.ReadFile(name); err == nil {
			err = readExpiries(text, expiries)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		tb.Fatalf("redistest: append-only file: %v", err)
	}
	return expiries
}

// readExpiries goes through the commands of an append-only file. The last may have
// been cut off.
func readExpiries(text []byte, expiries map[string]time.Time) error {
	for len(text) > 0 {
		args, rest, err := nextCommand(text)
		if err != nil {
			return err
		}
		if args == nil {
			return nil
		}
		text = rest
		key, at, err := expiryIn(args)
		if err != nil {
			return err
		}
		if key != "" {
			expiries[key] = at
		}
	}
	return nil
}

// expiryIn returns the key to which a command gives an expiry, if it does. All that
// set one are written as one of these two, whatever the client sent.
func expiryIn(args []string) (string, time.Time, error) {
	ms := ""
	switch name := strings.ToUpper(args[0]); {
	case name == "PEXPIREAT" && len(args) >= 3:
		ms = args[2]
	case name == "SET":
		for i, a := range args[min(3, len(args)):] {
			if strings.EqualFold(a, "PXAT") && i+4 < len(args) {
				ms = args[i+4]
			}
		}
	}
	if ms == "" {
		return "", time.Time{}, nil
	}
	n, err := strconv.ParseInt(ms, 10, 64)
	return args[1], time.UnixMilli(n), err
}

// nextCommand takes one command off text: an array of bulk strings. It returns none
// if it does not end.
func nextCommand(text []byte) (args []string, rest []byte, err error) {
	n, rest, ok, err := header(text, '*')
	for ; ok && n > 0; n-- {
		var size int
		size, rest, ok, err = header(rest, '$')
		if !ok || len(rest) < size+2 {
			return nil, nil, err
		}
		args, rest = append(args, string(rest[:size])), rest[size+2:]
	}
	if !ok {
		return nil, nil, err
	}
	if len(args) == 0 {
		return nil, nil, errors.New("an empty command")
	}
	return args, rest, nil
}

// header reads a line that is kind and a number. It is not ok when it does not end.
func header(text []byte, kind byte) (n int, rest []byte, ok bool, err error) {
	line, rest, ok := bytes.Cut(text, []byte("\r\n"))
	if !ok {
		return 0, nil, false, nil
	}
	if len(line) < 2 || line[0] != kind {
		return 0, nil, false, fmt.Errorf("%.20q where %q and a number belong", line, kind)
	}
	n, err = strconv.Atoi(string(line[1:]))
	return n, rest, err == nil && n >= 0, err
}

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
