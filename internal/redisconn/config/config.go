// Package config says what the connections of one client have in common: the transports to
// one master, to a cluster and to a master that Sentinels name take the same [Config], and
// hand it down. [NodeError] says which of several servers an error is about.
package config

import (
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Config says how the built-in transports connect.
type Config struct {
	// Dial makes a connection to the master that is ready to use. Clusters do without.
	Dial func(ctx context.Context) (redis.Conn, error)
	// DialReplica makes a connection to the replica at addr, host:port, that is
	// ready to use. With nil, the listeners of a master that has replicas cannot
	// be counted. Clusters do without.
	DialReplica func(ctx context.Context, addr string) (redis.Conn, error)
	// Command bounds the wait for one reply.
	Command time.Duration
	// Lease is that of holds without one of their own, zero if there are no holds.
	Lease time.Duration
	// DialTimeout bounds one dial.
	DialTimeout time.Duration
	// ClientName names the connections on the server, "" does not.
	ClientName string
	// Logger hears of connections made and lost, and of what is refused. With nil there
	// is silence.
	Logger *slog.Logger
	// Reconnected gets "commands" or "subscriptions" when such a connection to a master
	// was made in place of a lost one. With nil it is not reported.
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

// OnReconnect returns a function that tells of one kind of connection, nil when it is not
// asked for.
func (c *Config) OnReconnect(connection string) func() {
	if c.Reconnected == nil {
		return nil
	}
	tell := c.Reconnected
	return func() { tell(connection) }
}

// LoggerWith returns Logger with more to say, nil when there is none.
func (c *Config) LoggerWith(args ...any) *slog.Logger {
	if c.Logger == nil {
		return nil
	}
	return c.Logger.With(args...)
}
