package redisconn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Dial makes a connection that is ready to use.
type Dial = func(ctx context.Context) (redis.Conn, error)

// NodeDial makes a connection to the server at addr, host:port, that is ready to use.
type NodeDial = func(ctx context.Context, addr string) (redis.Conn, error)

// Config says how the built-in transports connect.
type Config struct {
	// Dial makes a connection to the master. Clusters do without.
	Dial Dial
	// DialReplica makes a connection to a replica. With nil, the listeners of a master that
	// has replicas cannot be counted. Clusters do without.
	DialReplica NodeDial
	// Command bounds the wait for one reply.
	Command time.Duration
	// Lease is that of holds without one of their own, zero if there are no holds.
	Lease time.Duration
	// DialTimeout bounds one dial.
	DialTimeout time.Duration
	// ClientName names the connections on the server, "" does not.
	ClientName string
	// Logger gets connections made and lost, and what is refused. Nil: nowhere.
	Logger *slog.Logger
	// Reconnected gets "commands" or "subscriptions" when such a connection to a master
	// was made in place of a lost one. Nil: it is not reported.
	Reconnected func(connection string)
}

// ReplyLimit is how long a connection may owe a reply before it is given up:
// long enough for a slow script, short enough to try a renewal again on another
// connection within the lease.
func (c *Config) ReplyLimit() time.Duration {
	limit := 2 * c.Command
	if c.Lease > 0 {
		limit = min(limit, c.Lease/4)
	}
	return max(limit, 500*time.Millisecond)
}

// OnReconnect returns a function that reports one kind of connection, nil if none is reported.
func (c *Config) OnReconnect(connection string) func() {
	if c.Reconnected == nil {
		return nil
	}
	return func() { c.Reconnected(connection) }
}

// LoggerWith returns Logger with more attributes, nil when there is none.
func (c *Config) LoggerWith(args ...any) *slog.Logger {
	if c.Logger == nil {
		return nil
	}
	return c.Logger.With(args...)
}

// Naming returns a function that makes dial name its connections ClientName. A server that
// refuses is tolerated, and logged once: the name is for people who read CLIENT LIST.
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
				return nil, err // what has no connection is refused as without a name
			}
			return setName(ctx, conn, c.ClientName, refused)
		}
	}
}

// setName sends CLIENT SETNAME. It closes conn on an error.
func setName(ctx context.Context, conn redis.Conn, name string, refused func(error)) (redis.Conn, error) {
	// The connection knows nothing of ctx: end the command with it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err := conn.Do("CLIENT", "SETNAME", name)
	switch {
	case !stop():
		return nil, context.Cause(ctx)
	case err == nil:
		return conn, nil
	case conn.Err() != nil, (&transport.ServerError{Text: err.Error()}).IsFull():
		_ = conn.Close() // broken, or the server has no room for it and hangs up
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
	c.Logger.Warn("redlatch: the server does not name this client's connections", why...)
}

// NodeError is an error of one server of a cluster, or of the master that Sentinels name.
type NodeError struct {
	// Addr is host:port, as it was dialed.
	Addr string
	// Err is what went wrong.
	Err error
}

// AtNode returns err as an error of the server at addr. Nil stays nil, and an error that names a
// server stays as it is.
func AtNode(addr string, err error) error {
	var node *NodeError
	if err == nil || errors.As(err, &node) {
		return err
	}
	return &NodeError{Addr: addr, Err: err}
}

// Error names the server if Err does not.
func (n *NodeError) Error() string {
	text := n.Err.Error()
	if strings.Contains(text, n.Addr) {
		return text
	}
	return text + " (" + n.Addr + ")"
}

// Unwrap returns Err.
func (n *NodeError) Unwrap() error { return n.Err }
