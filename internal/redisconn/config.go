package redisconn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/transport"
)

// Dial returns a connection that is ready for use.
type Dial = func(ctx context.Context) (redis.Conn, error)

// NodeDial connects to the server at addr, which has the form host:port.
type NodeDial = func(ctx context.Context, addr string) (redis.Conn, error)

// Config configures the built-in transports.
type Config struct {
	// Dial connects to the master. Clusters do not use it.
	Dial Dial
	// DialReplica connects to a replica. If it is nil, the subscribers of a master with replicas cannot be counted.
	// Clusters do not use it.
	DialReplica NodeDial
	// Command is the timeout for one reply.
	Command time.Duration
	// Lease is the default lease, or 0 if the client does not acquire locks.
	Lease       time.Duration
	DialTimeout time.Duration
	ClientName  string
	// Logger logs when connections are made or lost, and when the server rejects a command.
	Logger *slog.Logger
	// Reconnected, if not nil, is called with "commands" or "subscriptions" when a connection has replaced a lost
	// one.
	Reconnected func(connection string)
}

// ReplyLimit returns how long a reply may take. This is long enough for a slow script, and short enough to repeat a
// renewal on another connection within the lease.
func (c *Config) ReplyLimit() time.Duration {
	limit := 2 * c.Command
	if c.Lease > 0 {
		limit = min(limit, c.Lease/4)
	}
	return max(limit, 500*time.Millisecond)
}

// OnReconnect returns a function that calls Reconnected with connection, or nil if Reconnected is nil.
func (c *Config) OnReconnect(connection string) func() {
	if c.Reconnected == nil {
		return nil
	}
	return func() { c.Reconnected(connection) }
}

// LoggerWith returns Logger with the given attributes, or nil if Logger is nil.
func (c *Config) LoggerWith(args ...any) *slog.Logger {
	if c.Logger == nil {
		return nil
	}
	return c.Logger.With(args...)
}

// Naming returns a function that wraps dial so that it sets the name of its connections to ClientName. If the server
// rejects the name, the function logs this once.
func (c *Config) Naming() func(dial Dial) Dial {
	if c.ClientName == "" {
		return func(dial Dial) Dial { return dial }
	}
	var logged sync.Once
	refused := func(err error) {
		if c.Logger != nil {
			logged.Do(func() { c.logRefusal(err) })
		}
	}
	return func(dial Dial) Dial {
		return func(ctx context.Context) (redis.Conn, error) {
			conn, err := dial(ctx)
			if err != nil || conn == nil {
				return nil, err
			}
			return setName(ctx, conn, c.ClientName, refused)
		}
	}
}

func setName(ctx context.Context, conn redis.Conn, name string, refused func(error)) (redis.Conn, error) {
	// Commands on conn don't end with ctx.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err := conn.Do("CLIENT", "SETNAME", name)
	switch {
	case !stop():
		return nil, context.Cause(ctx)
	case err == nil:
		return conn, nil
	case conn.Err() != nil, builtin.IsFull(&transport.ServerError{Text: err.Error()}):
		_ = conn.Close() // conn is broken, or the server will close it
		return nil, err
	}
	refused(err)
	return conn, nil
}

func (c *Config) logRefusal(err error) {
	why := []any{"error", err}
	if strings.HasPrefix(err.Error(), "NOPERM ") {
		why = append(why, "right", "+client|setname")
	}
	c.Logger.Warn("redlatch: the server rejects CLIENT SETNAME", why...)
}

// NodeError is an error from one server, in a cluster or behind Sentinels.
type NodeError struct {
	Addr string
	Err  error
}

// AtNode returns err as an error from the server at addr, unless it is nil or already a NodeError.
func AtNode(addr string, err error) error {
	var node *NodeError
	if err == nil || errors.As(err, &node) {
		return err
	}
	return &NodeError{Addr: addr, Err: err}
}

// Error returns the message of Err, with the node's address.
func (n *NodeError) Error() string {
	text := n.Err.Error()
	if strings.Contains(text, n.Addr) {
		return text
	}
	return text + " (" + n.Addr + ")"
}

// Unwrap returns Err.
func (n *NodeError) Unwrap() error { return n.Err }
