// Package redistest provides tests with real servers ([Start], [StartCluster], [StartSentinels]), in-memory servers
// ([Mini]) and a network that can fail ([Proxy]). Servers end with the test, on Linux also if its process is killed.
//
// REDLATCH_SERVER names the server program; the default is redis-server, else valkey-server, from PATH. REDLATCH_VALKEY
// names Valkey; the default is that of `make setup`.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/embedded"
)

const serverEnv = "REDLATCH_SERVER"

// Option configures a server.
type Option func(*config)

type config struct {
	binary     string
	args       []string
	unixSocket bool
	password   string
	cpus       []int
	redis6     bool // lacks the cluster-port option
	sentinel   string
}

// WithBinary sets the server program by name or path.
func WithBinary(nameOrPath string) Option { return func(c *config) { c.binary = nameOrPath } }

// WithRedis6 is WithBinary for a Redis 6, which StartCluster starts differently.
func WithRedis6(nameOrPath string) Option {
	return func(c *config) { c.binary, c.redis6 = nameOrPath, true }
}

// WithArgs adds command-line arguments, which override earlier ones and the package's own.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// WithUnixSocket makes the server also listen on a unix socket.
func WithUnixSocket() Option { return func(c *config) { c.unixSocket = true } }

// WithPassword sets the default user's password.
func WithPassword(password string) Option { return func(c *config) { c.password = password } }

// WithProcessors runs the server on these processors, on Linux.
func WithProcessors(cpus ...int) Option { return func(c *config) { c.cpus = cpus } }

func newConfig(opts []Option) config {
	c := config{binary: os.Getenv(serverEnv)}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// FindServer returns the path of the program that Start runs.
func FindServer() (path string, err error) {
	cfg := newConfig(nil)
	err = cfg.findBinary()
	return cfg.binary, err
}

// findBinary does not follow links: valkey-server may be a link to a program that checks its name.
func (c *config) findBinary() error {
	names := []string{"redis-server", "valkey-server"}
	if c.binary != "" {
		names = []string{c.binary}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			c.binary = path
			return nil
		}
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return fmt.Errorf("no server to test with: none of %q was found; run `make setup`, or set %s to the path of a redis-server or valkey-server",
		names, serverEnv)
}

// FreePort returns a free loopback port, or 0, below the range of outgoing connections.
func FreePort() int {
	for range 1000 {
		if port := 20000 + rand.IntN(12000); isFree(port) { //nolint:gosec // a port to try, not a secret
			return port
		}
	}
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func redisURL(addr, password string) string {
	u := url.URL{Scheme: "redis", Host: addr}
	if password != "" {
		u.User = url.UserPassword("", password)
	}
	return u.String()
}

const valkeyEnv = "REDLATCH_VALKEY"

var valkeyKept = filepath.Join(".servers", "valkey", "usr", "bin", "valkey-server")

// StartValkey is Start with the program of ValkeyBinary.
func StartValkey(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	path := ValkeyBinary(tb)
	s := Start(tb, append(opts, WithBinary(path))...)
	if s.Name() != "valkey" {
		tb.Fatalf("redistest: %s is not Valkey but %s %s", path, s.Name(), s.Version())
	}
	return s
}

// ValkeyBinary returns the path of valkey-server. If there is none, it skips the test, or fails it if CI=true or
// REDLATCH_VALKEY is set.
func ValkeyBinary(tb testing.TB) string {
	tb.Helper()
	path, err := FindValkey()
	switch {
	case err == nil:
	case testing.Short() || os.Getenv(valkeyEnv) == "" && os.Getenv("CI") != "true":
		tb.Skipf("NOT RUN ON VALKEY: %v", err)
	default:
		tb.Fatalf("redistest: %v", err)
	}
	return path
}

var moreKept = filepath.Join(".servers", "more")

// MoreServers returns the servers that scripts/more-servers.sh installed.
func MoreServers() []string {
	folder := upwards(moreKept)
	if folder == "" {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*", "*-server"))
	return paths
}

// FindValkey is ValkeyBinary without a test.
func FindValkey() (path string, err error) {
	name := os.Getenv(valkeyEnv)
	if name == "" {
		name = "valkey-server"
		if kept := upwards(valkeyKept); kept != "" {
			name = kept
		}
	}
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("no Valkey to test with: %w; run `make setup`, or set %s to its path", err, valkeyEnv)
	}
	return path, nil
}

func upwards(name string) string {
	folder, err := filepath.Abs(".")
	if err != nil {
		return ""
	}
	for {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}

// StartWithout starts a server without the given commands and returns it with a user's URL. Subcommands, such as
// client|kill, cannot be renamed, so the user is denied them; and so is client, which this package sends itself.
func StartWithout(tb testing.TB, commands []string) (s *Server, user string) {
	tb.Helper()
	var args []string
	const name = "limited"
	rights := []string{"--user", name, "on", ">" + Password, "~*", "&*", "+@all"}
	for _, command := range commands {
		if strings.Contains(command, "|") || command == "client" {
			rights = append(rights, "-"+command)
		} else {
			args = append(args, "--rename-command", command, "")
		}
	}
	s = Start(tb, WithArgs(append(args, rights...)...))
	return s, s.UserURL(name)
}

// MiniServer is an in-memory server for one test.
type MiniServer struct {
	*embedded.Server
	pool *redis.Pool
}

// Mini starts an in-memory server for this test. In a synctest bubble use embedded.WithInProcess.
func Mini(tb testing.TB, opts ...embedded.Option) *MiniServer {
	tb.Helper()
	srv, err := embedded.Start(opts...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s := &MiniServer{Server: srv}
	s.pool = &redis.Pool{MaxIdle: 1, TestOnBorrow: ping, DialContext: srv.Dial}
	tb.Cleanup(func() {
		_ = s.pool.Close()
		srv.Close()
	})
	return s
}

// Dial returns an in-memory connection without a read timeout, for one goroutine, until the test ends.
func (s *MiniServer) Dial(tb testing.TB) redis.Conn {
	tb.Helper()
	c, err := s.Server.Dial(context.Background())
	return closedWith(tb, c, err)
}

// Do runs one command. It is safe for concurrent use.
func (s *MiniServer) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	return poolDo(tb, s.pool, cmd, args...)
}
