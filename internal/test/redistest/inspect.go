package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

const ownName = "redistest"

type serverInfo struct {
	name    string
	version string
	pid     int
}

// Dial returns an authenticated connection for one goroutine. It has no read timeout, and is closed when the test ends.
func (s *Server) Dial(tb testing.TB) redis.Conn {
	tb.Helper()
	c, err := redis.Dial("tcp", s.Addr(), s.dialOptions()...)
	return closedWith(tb, c, err)
}

// Do runs one command and returns the reply as redigo represents it. It is safe for concurrent use.
func (s *Server) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	return poolDo(tb, s.pool, cmd, args...)
}

// Name returns the server's name, such as "redis".
func (s *Server) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.name
}

// Version returns the server's own version, such as "7.0.15".
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.version
}

// BytesSent returns the server's total_net_output_bytes, which CONFIG RESETSTAT resets.
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

// CommandStats returns the number of calls to each command from INFO commandstats. The keys are the lower-case names of
// the commands. Calls by scripts and by this package are included. CONFIG RESETSTAT resets the numbers.
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

// KillClients kills all other connections of the given kind, "normal" or "pubsub", and returns their number.
func (s *Server) KillClients(tb testing.TB, kind string) int {
	tb.Helper()
	n, err := redis.Int(s.Do(tb, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"), nil)
	if err != nil {
		tb.Fatalf("redistest: kill %s clients: %v", kind, err)
	}
	return n
}

// Clients returns the number of connections to the server, except those of this package.
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

// Channels returns the channels that have subscribers.
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

func (s *Server) askInfo(ctx context.Context) (serverInfo, error) {
	c, err := s.dialOwn(ctx)
	if err != nil {
		return serverInfo{}, err
	}
	defer func() { _ = c.Close() }()
	if err := ping(c, time.Time{}); err != nil {
		return serverInfo{}, err
	}
	text, err := redis.String(c.Do("INFO", "server"))
	if err != nil {
		return serverInfo{}, err
	}
	return parseInfo(text)
}

// parseInfo prefers the version field named after the server, because forks report in redis_version the Redis version
// with which they are compatible.
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

func (s *Server) dialOwn(ctx context.Context) (redis.Conn, error) {
	opts := append(s.dialOptions(), redis.DialReadTimeout(ioTimeout), redis.DialClientName(ownName))
	return redis.DialContext(ctx, "tcp", s.Addr(), opts...)
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) logTail() string {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const keep = 2000
	return string(bytes.TrimSpace(log[max(0, len(log)-keep):]))
}

func ping(c redis.Conn, _ time.Time) error {
	_, err := c.Do("PING")
	return err
}

func closedWith(tb testing.TB, c redis.Conn, err error) redis.Conn {
	tb.Helper()
	if err != nil {
		tb.Fatalf("redistest: dial: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func poolDo(tb testing.TB, pool *redis.Pool, cmd string, args ...any) any {
	tb.Helper()
	c := pool.Get()
	defer func() { _ = c.Close() }()
	reply, err := c.Do(cmd, args...)
	if err != nil {
		tb.Fatalf("redistest: %s %v: %v", cmd, args, err)
	}
	return reply
}

// WithAppendOnly makes the server append each change to a file before it replies, so that Restart preserves the data
// and Expiries works. It requires Valkey or Redis 7.
func WithAppendOnly() Option { return WithArgs("--appendonly", "yes", "--appendfsync", "no") }

// Expiries returns the last expiry that the server set for each key, even if the key no longer exists. It reads the
// append-only file, so it requires WithAppendOnly, but works even if the server is dead.
func (s *Server) Expiries(tb testing.TB) map[string]time.Time {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 {
		err = errors.New("append-only file is off; use WithAppendOnly")
	}
	expiries := map[string]time.Time{}
	for _, name := range files { // in the order of the numbers in their names
		var text []byte
		if text, err = os.ReadFile(name); err == nil {
			err = readExpiries(bytes.NewReader(text), expiries)
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

// readExpiries parses an append-only file. Its last command may be incomplete.
func readExpiries(file io.Reader, expiries map[string]time.Time) error {
	for in := bufio.NewReader(file); ; {
		args, err := ReadCommand(in)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return errors.New("an empty command")
		}
		key, at, err := expiryIn(args)
		if err != nil {
			return err
		}
		if key != "" {
			expiries[key] = at
		}
	}
}

// expiryIn relies on the fact that servers write all expiries as PEXPIREAT or SET PXAT.
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

// Target is a real server or an in-memory server. Its methods are safe for concurrent use.
type Target interface {
	Addr() string
	URL() string
	Dial(tb testing.TB) redis.Conn
	Do(tb testing.TB, cmd string, args ...any) any
}

// EachServer runs body on a new real server, on an in-memory server and on Valkey. Below the full test level it skips
// the last two. With -short it runs body only on the in-memory server.
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
