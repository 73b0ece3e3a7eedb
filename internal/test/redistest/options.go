// Package redistest provides tests with real servers ([Start], [StartCluster], [StartSentinels]), in-memory servers
// ([Mini]) and a network that can fail ([Proxy]). Servers are stopped when the test ends. On Linux, they are also
// stopped if the process of the test is killed.
//
// The environment variable REDLATCH_SERVER is the name or path of the server program. The default is redis-server or,
// if it is not in PATH, valkey-server. REDLATCH_VALKEY is the name or path of Valkey. The default is the program that
// `make setup` installed.
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
	redis6     bool // the program does not have the option cluster-port
	sentinel   string
}

// WithBinary sets the name or path of the server program.
func WithBinary(nameOrPath string) Option { return func(c *config) { c.binary = nameOrPath } }

// WithRedis6 is WithBinary for Redis 6, for which StartCluster uses different arguments.
func WithRedis6(nameOrPath string) Option {
	return func(c *config) { c.binary, c.redis6 = nameOrPath, true }
}

// WithArgs adds command-line arguments. They override the arguments of earlier options and of the package itself.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// WithUnixSocket makes the server also listen on a unix socket.
func WithUnixSocket() Option { return func(c *config) { c.unixSocket = true } }

// WithPassword sets the default user's password.
func WithPassword(password string) Option { return func(c *config) { c.password = password } }

// WithProcessors runs the server on the given processors. It only works on Linux.
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

// findBinary does not resolve symbolic links, because valkey-server may be a link to a program that checks its name.
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

// FreePort returns a free loopback port below the range for outgoing connections, or 0 if it does not find one.
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

// StartValkey is Start with the program that ValkeyBinary returns.
func StartValkey(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	path := ValkeyBinary(tb)
	s := Start(tb, append(opts, WithBinary(path))...)
	if s.Name() != "valkey" {
		tb.Fatalf("redistest: %s is not Valkey but %s %s", path, s.Name(), s.Version())
	}
	return s
}

// ValkeyBinary returns the path of valkey-server. If it is not installed, ValkeyBinary skips the test, or fails it if
// CI=true or REDLATCH_VALKEY is set.
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

// MoreServers returns the paths of the servers that scripts/more-servers.sh installed.
func MoreServers() []string {
	folder := upwards(moreKept)
	if folder == "" {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*", "*-server"))
	return paths
}

// FindValkey returns the path of valkey-server, or an error if it is not installed.
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

// StartWithout starts a server without the given commands. It returns the server and the URL of a user. Subcommands
// such as client|kill cannot be renamed, so the user is not allowed to run them. The same applies to the command
// client, which this package uses itself.
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

// Mini starts an in-memory server that runs until the test ends. In a synctest bubble, use embedded.WithInProcess.
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

// Dial returns an in-memory connection for one goroutine. It has no read timeout, and is closed when the test ends.
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
