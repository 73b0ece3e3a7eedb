package redlatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// NewSentinel returns a client for a master monitored by Sentinels. It does no I/O: the client connects
// on first use, and calls return [ErrNotSent] if that fails.
//
// master returns the current master's address, host:port; [AskSentinels] returns such a function. It is
// called for each new connection and when the master may have changed: after a message from a Sentinel
// or a READONLY reply, and once a second while no Sentinel publishes messages. dial connects to that
// address, and to replicas unless [WithReplicaDialer] is set, and returns connections as for [New].
// Both must respect ctx and be safe for concurrent use.
//
// The client sends SUBSCRIBE __sentinel__:hello to the master, and needs permission to subscribe to
// that channel to detect failovers immediately. It closes connections to a former master.
func NewSentinel(
	master func(ctx context.Context) (addr string, err error),
	dial func(ctx context.Context, addr string) (redis.Conn, error),
	opts ...Option,
) (*Client, error) {
	if master == nil || dial == nil {
		return nil, fmt.Errorf("%w: NewSentinel needs a master lookup function and a dial function", ErrInvalid)
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return newClient(set.sentinel(master, checked(dial)), &set), nil
}

// AskSentinels returns a function for [NewSentinel] that queries the Sentinels at addrs, host:port, and
// their known peers for the master called name. It queries them concurrently and, among the replies
// that arrive within 250 ms of the first, uses the one with the latest failover. dial connects to a
// Sentinel and authenticates. The function sends SENTINEL MASTER, GET-MASTER-ADDR-BY-NAME and
// SENTINELS, and is safe for concurrent use.
func AskSentinels(
	name string, addrs []string, dial func(ctx context.Context, addr string) (redis.Conn, error),
) func(ctx context.Context) (addr string, err error) {
	if dial == nil {
		dial = func(context.Context, string) (redis.Conn, error) {
			return nil, errors.New("redlatch: AskSentinels needs a dial function")
		}
	}
	return failover.NewSentinels(name, addrs, checked(dial)).Master
}

// NewCluster returns a client for the cluster with nodes at seeds, host:port. One reachable node is
// enough: CLUSTER SLOTS lists the others. dial connects to a node at an address from seeds or from
// another node, and returns connections as for [New]. It must respect ctx and be safe for concurrent
// use.
//
// Unless [WithShardedPubSub] is set, NewCluster queries a node with PUBSUB SHARDNUMSUB. ctx applies
// only to that command, and the error wraps [ErrNotSent] if no node replied. Otherwise NewCluster
// does no I/O.
func NewCluster(
	ctx context.Context, seeds []string, dial func(ctx context.Context, addr string) (redis.Conn, error), opts ...Option,
) (*Client, error) {
	engine.NeedContext(ctx)
	if dial == nil || len(seeds) == 0 {
		return nil, fmt.Errorf("%w: NewCluster needs the address of a node and a dial function", ErrInvalid)
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	t, err := set.cluster(ctx, slices.Clone(seeds), checked(dial), set.sharding)
	if err != nil {
		return nil, fmt.Errorf("redlatch: connect to the cluster: %w", err)
	}
	return newClient(t, &set), nil
}

func checked(dial redisconn.NodeDial) redisconn.NodeDial {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		conn, err := dial(ctx, addr)
		if err == nil && conn == nil {
			return nil, errors.New("redlatch: the dial function returned no connection")
		}
		return conn, err
	}
}

// connect waits for a reply unless WithLazyConnect is set.
func (s *settings) connect(ctx context.Context, url string) (transport.Transport, error) {
	a, err := s.parse(url)
	if err != nil {
		return nil, err
	}
	t, err := s.transport(ctx, a)
	if err == nil && !s.lazy {
		if err = mux.Ping(ctx, t); err != nil {
			_ = t.Close() // the error of PING is more useful
		}
	}
	if err != nil {
		return nil, fmt.Errorf("redlatch: connect to %s: %w", a, err)
	}
	return t, nil
}

func (s *settings) transport(ctx context.Context, a *redisurl.Address) (transport.Transport, error) {
	switch a.Kind {
	case redisurl.Cluster:
		return s.cluster(ctx, a.Hosts, s.nodes(a), s.publishing(a))
	case redisurl.Sentinels:
		// Sentinels have separate users.
		alone := *s
		alone.credentials = nil
		ask := alone.nodes(&redisurl.Address{
			Kind: redisurl.Sentinels, Secure: a.Secure, User: a.SentinelUser, Password: a.SentinelPassword,
		})
		return s.sentinel(failover.NewSentinels(a.Master, a.Hosts, ask).Master, s.nodes(a)), nil
	}
	if s.dialReplica == nil {
		replica := *a
		replica.DB = 0 // channels do not belong to a database
		s.dialReplica = s.nodes(&replica)
	}
	return s.single(func(ctx context.Context) (redis.Conn, error) { return s.dialTo(ctx, a.Server(), a.Secure) }), nil
}

func (s *settings) single(dial redisconn.Dial) transport.Transport {
	cfg := s.conn()
	cfg.Dial = dial
	return redisconn.NewRedigo(cfg)
}

func (s *settings) cluster(
	ctx context.Context, seeds []string, dial redisconn.NodeDial, publish transport.Sharding,
) (transport.Transport, error) {
	c, err := cluster.Open(ctx, seeds, dial, publish, s.conn())
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return c, nil
}

func (s *settings) sentinel(master func(context.Context) (string, error), dial redisconn.NodeDial) transport.Transport {
	cfg := s.conn()
	if cfg.DialReplica == nil {
		cfg.DialReplica = dial
	}
	return failover.New(failover.Config{Master: master, Dial: dial, Conn: cfg})
}

func (s *settings) publishing(d *redisurl.Address) transport.Sharding {
	switch d.Sharding {
	case "auto":
		return transport.ShardingAuto
	case "on":
		return transport.ShardingOn
	case "off":
		return transport.ShardingOff
	}
	return s.sharding
}

func (s *settings) conn() redisconn.Config {
	return redisconn.Config{
		DialReplica: s.dialReplica,
		Command:     s.Command,
		Lease:       s.Lease,
		DialTimeout: s.dialTimeout,
		ClientName:  s.clientName,
		Logger:      s.Logger,
		Reconnected: alone(s, "Reconnected", s.observer.Reconnected,
			func(connection string) Reconnected { return Reconnected{Connection: connection} }),
	}
}

func (s *settings) parse(rawURL string) (*redisurl.Address, error) {
	a, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if s.tls != nil && !a.Secure {
		// Otherwise the connection would silently use plain text.
		return nil, fmt.Errorf("%w: address %s: WithTLSConfig needs an address with the scheme rediss, "+
			"rediss-cluster or rediss-sentinel", ErrInvalid, a)
	}
	if _, _, err := a.Credentials(); err != nil && s.credentials == nil {
		return nil, fmt.Errorf("%w: address %s: %w", ErrInvalid, a, err)
	}
	if s.lazy && a.Kind == redisurl.Cluster && s.publishing(a) == transport.ShardingAuto {
		// If the guess were wrong, waiters would never be woken.
		return nil, fmt.Errorf("%w: address %s: WithLazyConnect cannot detect sharded Pub/Sub: "+
			"add ?sharded_pubsub=on, or off if the fleet uses PUBLISH", ErrInvalid, a)
	}
	return a, nil
}

// nodes returns a function that dials over TCP, even if the server itself is on a Unix socket.
func (s *settings) nodes(a *redisurl.Address) redisconn.NodeDial {
	return func(ctx context.Context, addr string) (redis.Conn, error) { return s.dialTo(ctx, a.At(addr), a.Secure) }
}

func (s *settings) dialTo(ctx context.Context, to redisurl.Server, secure bool) (redis.Conn, error) {
	if s.credentials != nil {
		user, password, err := s.credentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("redlatch: credentials: %w", err)
		}
		to.User, to.Password = user, password
	}
	d := respconn.Dialer{Timeout: s.dialTimeout, Write: s.Command}
	switch {
	case secure && s.tls != nil:
		d.TLS = s.tls
	case secure:
		d.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return d.Dial(ctx, to)
}

// NewConn returns a connection over conn for a dial function, in place of redigo's redis.NewConn.
// It sends nothing. A reply longer than Redlatch expects closes the connection before memory is
// allocated for it. On TCP and Unix sockets, except on Windows and AIX, a lone caller reads and
// writes on its own goroutine. A write that takes longer than writeTimeout closes the connection; 0
// means no limit. The server must be ready for commands, and the caller must not use conn
// afterward.
func NewConn(conn net.Conn, writeTimeout time.Duration) redis.Conn {
	return respconn.NewConn(conn, writeTimeout)
}
