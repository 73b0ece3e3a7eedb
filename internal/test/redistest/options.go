// Package redistest gives tests real servers, in-memory ones, and a network
// that can be broken on purpose.
//
// # The life of a server
//
//	            ┌────────── Restart ─────────────┐
//	            ▼                                │
//	Start ─▶ running ──Kill / Shutdown──▶ stopped
//	            │  ▲
//	       Pause│  │Resume
//	            ▼  │
//	          frozen
//
// [Start] makes a server for one test: a redis-server or valkey-server process
// on a free loopback port, empty, without persistence unless [WithAppendOnly] asks
// for it. It ends with the test, in whatever state it is. On Linux it also ends with the test process, however
// that dies. [Shared] is one server for the whole test binary; [Key] makes the
// names that keep its tests apart, and [Main] ends it.
//
// One goroutine per server process starts it, waits for it, and ends with it.
// It holds its OS thread all the while, because the kernel ends the process
// with the thread that started it.
//
// # Which server
//
// The environment variable REDLATCH_SERVER names the program, by name or path;
// [WithBinary] overrides it. Without either it is redis-server, else
// valkey-server, from PATH. A missing program fails the test, and skips it only
// under -short.
//
// [StartReplica] starts a replica of a server, with the same program unless told
// otherwise.
//
// [EachServer] runs a test on that server, in memory, and on Valkey: on the
// program that REDLATCH_VALKEY names, else on the one that `make setup` has
// fetched. A missing Valkey fails the test if CI=true, and skips it otherwise.
//
// # Several servers
//
// [StartCluster] makes a Redis Cluster of as many masters and replicas as a test
// needs, [StartSentinels] a master, two replicas and three Sentinels. Both return
// when all know of all others: before that, they would not do in a failure what they
// do otherwise. Their nodes are Servers of the test's own.
//
//	StartCluster:   CLUSTER MEET each with each ─▶ ADDSLOTSRANGE ─▶ all known ─▶
//	                REPLICATE ─▶ cluster_state:ok, replicas in step
//	StartSentinels: master ─▶ replicas in step ─▶ Sentinels ─▶ slaves=2,sentinels=3
//
// Their methods do to them what operators and failures do: MoveSlot, Failover, and
// the Kill and Pause of a node.
//
// # The network
//
// [Proxy] stands between a client and a server and holds back, delays, cuts or
// refuses what passes. What it holds back it can deliver later, as networks do.
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

// serverEnv names the server program for tests that do not choose one.
const serverEnv = "REDLATCH_SERVER"

// Option changes how Start starts a server.
type Option func(*config)

type config struct {
	binary     string
	args       []string
	port       int
	unixSocket bool
	password   string
	redis6     bool   // it takes no port of its own for the talk of a cluster's nodes
	sentinel   string // the configuration of a Sentinel; "": the server is none
}

// WithBinary sets the server program, a name to be found in PATH or a path.
// The default is the environment variable REDLATCH_SERVER, else redis-server,
// else valkey-server.
func WithBinary(nameOrPath string) Option { return func(c *config) { c.binary = nameOrPath } }

// WithRedis6 sets the server program to one of Redis 6, a name to be found in PATH or a
// path, which StartCluster must know.
func WithRedis6(nameOrPath string) Option {
	return func(c *config) { c.binary, c.redis6 = nameOrPath, true }
}

// WithArgs adds arguments to the server's command line, such as "--maxmemory",
// "2mb". Later arguments override earlier ones and the package's own.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// WithPort sets the TCP port. The default is a free one; with a port given, a
// port that is taken fails the test.
func WithPort(port int) Option { return func(c *config) { c.port = port } }

// WithUnixSocket makes the server listen on a unix socket too; Server.Socket
// has its path.
func WithUnixSocket() Option { return func(c *config) { c.unixSocket = true } }

// WithPassword makes the server demand a password of its default user. The
// Server's own methods know it.
func WithPassword(password string) Option { return func(c *config) { c.password = password } }

func newConfig(opts []Option) config {
	c := config{binary: os.Getenv(serverEnv)}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// FindServer returns the path of the program that Start starts, without a test that
// needs it, or an error that says what to do.
func FindServer() (path string, err error) {
	cfg := newConfig(nil)
	err = cfg.findBinary()
	return cfg.binary, err
}

// findBinary resolves the program's name. Links are kept as they are:
// valkey-server may be a link to a program that looks at its own name.
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

// FreePort returns a port of the loopback interface without a listener, 0 if there is none.
func FreePort() int { return freePort() }

// freePort returns a port that is free. It is below the range that systems give to outgoing
// connections, so that none of those takes it before the server does, or while the server is
// down.
func freePort() int {
	for range 1000 {
		if port := 20000 + rand.IntN(12000); isFree(port) { //nolint:gosec // a port to try, not a secret
			return port
		}
	}
	return 0 // the server will refuse it with an error
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func redisURL(addr, password string) string {
	u := url.URL{Scheme: "redis", Host: addr}
	if password != "" {
		u.User = url.UserPassword("", password)
	}
	return u.String()
}

// valkeyEnv names the valkey-server program, by name or path.
const valkeyEnv = "REDLATCH_VALKEY"

// valkeyKept is where scripts/redis-server.sh keeps the program that it fetched,
// below the module's folder.
var valkeyKept = filepath.Join(".servers", "valkey", "usr", "bin", "valkey-server")

// StartValkey starts an empty valkey-server for this test, as Start does, with the
// program of ValkeyBinary.
func StartValkey(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	path := ValkeyBinary(tb)
	s := Start(tb, append(opts, WithBinary(path))...)
	if s.Name() != "valkey" {
		tb.Fatalf("redistest: %s is no Valkey but %s %s", path, s.Name(), s.Version())
	}
	return s
}

// ValkeyBinary returns the path of the valkey-server program for WithBinary: the one
// that the environment variable REDLATCH_VALKEY names, else the one that `make
// setup` has fetched, else valkey-server from PATH. Where there is none, the test is
// skipped, unless CI=true or a program is named: then it fails.
func ValkeyBinary(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv(valkeyEnv)
	path, err := findValkey(name)
	switch {
	case err == nil:
	case testing.Short() || name == "" && os.Getenv("CI") != "true":
		tb.Skipf("NOT RUN ON VALKEY: %v", err)
	default:
		tb.Fatalf("redistest: %v", err)
	}
	return path
}

// FindValkey returns the path that ValkeyBinary does, without a test that needs it, or an
// error that says what to do.
func FindValkey() (path string, err error) { return findValkey(os.Getenv(valkeyEnv)) }

// moreKept is where scripts/more-servers.sh keeps programs, each in a folder that is named
// for it and its version.
var moreKept = filepath.Join(".servers", "more")

// MoreServers returns the paths of the servers of other releases that scripts/more-servers.sh
// has fetched, none where it has not run.
func MoreServers() []string {
	folder := upwards(moreKept)
	if folder == "" {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*", "*-server")) // the pattern is fine
	return paths
}

// findValkey returns the program's path. Links are kept as they are: the program
// is one that looks at its own name.
func findValkey(name string) (string, error) {
	if name == "" {
		name = "valkey-server"
		if kept := upwards(valkeyKept); kept != "" {
			name = kept
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no Valkey to test with: %w; run `make setup`, or set %s to its path", err, valkeyEnv)
	}
	return path, nil
}

// upwards looks for a file of the module from the test's folder upwards, and returns
// its path, "" if there is none.
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

// StartWithout starts a server that keeps commands to itself, as managed services do, and
// returns it with the URL of a user. The server does not know the commands. Subcommands,
// such as client|kill, are denied to the user, for they cannot be made unknown, and so is
// client, which this package sends itself.
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
