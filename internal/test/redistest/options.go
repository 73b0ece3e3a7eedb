package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
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
