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

// NewSentinel returns a client of a master that Sentinels may replace. master returns the
// address, host:port, of the server that is master now; [AskSentinels] makes such a
// function. dial connects to that address, and to those of replicas unless
// [WithReplicaDialer] says how; what it returns must be as for [New], and lead to the
// address that it was given. Both are called whenever a connection is made, master also
// when the master may be another: when a Sentinel says so, when a server answers
// READONLY, and once a second while no Sentinel is heard. Both must heed ctx, and may be
// called at the same time by several goroutines.
//
// NewSentinel does no I/O: connections are made on first use, and what does not work
// shows as ErrNotSent then. On the connection for subscriptions it sends SUBSCRIBE
// __sentinel__:hello, where every Sentinel names the master every two seconds; it needs
// the right to that channel, without which master is called once a second. Connections to
// a former master are closed at once, since it goes on taking locks for seconds.
func NewSentinel(
	master func(ctx context.Context) (addr string, err error),
	dial func(ctx context.Context, addr string) (redis.Conn, error),
	opts ...Option,
) (*Client, error) {
	if master == nil || dial == nil {
		return nil, errors.New("redlatch: NewSentinel needs two functions, one that names the master and one that dials")
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return newClient(set.sentinel(master, checked(dial)), &set), nil
}

// AskSentinels returns a function for [NewSentinel] that asks the Sentinels at addrs,
// host:port, and the others that these know of, which server is the master that they call
// name. All are asked at once; of those that answer within 250 ms of the first, the one
// counts that knows of the latest switch. dial connects to a Sentinel, with the user and
// the password that Sentinels have; each connection is closed after the answer. The
// function sends SENTINEL MASTER, SENTINEL GET-MASTER-ADDR-BY-NAME and SENTINEL SENTINELS.
// It is safe for concurrent use, and its error says why no Sentinel has named a master.
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

// NewCluster returns a client of the cluster of the nodes at seeds, host:port: those that
// are there at first will do, the others are found (CLUSTER SLOTS). dial connects to the
// node at addr, one of seeds or an address that a node has given; what it returns must be
// as for [New]. It must heed ctx, and may be called at the same time by several
// goroutines.
//
// To find out how messages are published NewCluster connects to a node and sends PUBSUB
// SHARDNUMSUB, unless [WithShardedPubSub] decides: ctx bounds that, and the error wraps
// ErrNotSent when no node could be asked. Otherwise it does no I/O.
func NewCluster(
	ctx context.Context, seeds []string, dial func(ctx context.Context, addr string) (redis.Conn, error), opts ...Option,
) (*Client, error) {
	engine.NeedContext(ctx)
	if dial == nil || len(seeds) == 0 {
		return nil, errors.New("redlatch: NewCluster needs the address of a node and a dial function")
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

// checked returns dial with an error in place of nothing.
func checked(dial redisconn.NodeDial) redisconn.NodeDial {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		conn, err := dial(ctx, addr)
		if err == nil && conn == nil {
			return nil, errors.New("redlatch: the dial function has made no connection")
		}
		return conn, err
	}
}

// connect returns the transport to what is at url, which has answered unless that is left to
// the first use.
func (s *settings) connect(ctx context.Context, url string) (transport.Transport, error) {
	a, err := s.parse(url)
	if err != nil {
		return nil, err
	}
	t, err := s.transport(ctx, a)
	if err == nil {
		if err = s.greet(ctx, t); err == nil {
			return t, nil
		}
		_ = t.Close() // the error that matters is why it does not answer
	}
	return nil, fmt.Errorf("redlatch: connect to %s: %w", a, err)
}

// greet returns nil when the server answers, or need not.
func (s *settings) greet(ctx context.Context, t transport.Transport) error {
	if s.lazy {
		return nil
	}
	return mux.Ping(ctx, t)
}

// transport returns the transport to what is at a.
func (s *settings) transport(ctx context.Context, a *redisurl.Address) (transport.Transport, error) {
	switch a.Kind {
	case redisurl.Cluster:
		return s.cluster(ctx, a.Hosts, s.nodes(a), s.publishing(a))
	case redisurl.Sentinels:
		// Sentinels have users of their own.
		alone := *s
		alone.credentials = nil
		ask := alone.nodes(&redisurl.Address{
			Kind: redisurl.Sentinels, Secure: a.Secure, User: a.SentinelUser, Password: a.SentinelPassword,
		})
		return s.sentinel(failover.NewSentinels(a.Master, a.Hosts, ask).Master, s.nodes(a)), nil
	}
	if s.dialReplica == nil {
		replica := *a
		replica.DB = 0 // subscribers are counted, and channels belong to no database
		s.dialReplica = s.nodes(&replica)
	}
	return s.single(func(ctx context.Context) (redis.Conn, error) { return s.dialTo(ctx, a.Server(), a.Secure) }), nil
}

// single returns the transport to one master.
func (s *settings) single(dial redisconn.Dial) transport.Transport {
	cfg := s.conn()
	cfg.Dial = dial
	return redisconn.NewRedigo(cfg)
}

// cluster returns the transport to a cluster whose nodes dial connects to.
func (s *settings) cluster(
	ctx context.Context, seeds []string, dial redisconn.NodeDial, publish transport.Sharding,
) (transport.Transport, error) {
	c, err := cluster.Open(ctx, seeds, dial, publish, s.conn())
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return c, nil
}

// sentinel returns the transport to the server that master names, which dial connects to.
func (s *settings) sentinel(master func(context.Context) (string, error), dial redisconn.NodeDial) transport.Transport {
	cfg := s.conn()
	if cfg.DialReplica == nil {
		cfg.DialReplica = dial
	}
	return failover.New(failover.Config{Master: master, Dial: dial, Conn: cfg})
}

// publishing returns how messages are published in a cluster: as its address says, else as
// the option does.
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

// conn returns what all connections of a client have in common.
func (s *settings) conn() redisconn.Config {
	return redisconn.Config{
		DialReplica: s.dialReplica,
		Command:     s.command,
		Lease:       s.watchdog,
		DialTimeout: s.dialTimeout,
		ClientName:  s.clientName,
		Logger:      s.logger,
		Reconnected: s.reconnected(),
	}
}

// parse returns the address at rawURL, which the settings go with.
func (s *settings) parse(rawURL string) (*redisurl.Address, error) {
	a, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redlatch: %w", err)
	}
	if s.tls != nil && !a.Secure {
		// It would be plain text, without a warning.
		return nil, fmt.Errorf("redlatch: address %s: WithTLSConfig needs an address with the scheme rediss, "+
			"rediss-cluster or rediss-sentinel", a)
	}
	if _, _, err := a.Credentials(); err != nil && s.credentials == nil {
		return nil, fmt.Errorf("redlatch: address %s: %w", a, err)
	}
	if s.lazy && a.Kind == redisurl.Cluster && s.publishing(a) == transport.ShardingAuto {
		// A wrong guess would leave waiters asleep.
		return nil, fmt.Errorf("redlatch: address %s: WithLazyConnect cannot ask a node how messages are published: "+
			"add ?sharded_pubsub=on, or off where the fleet uses PUBLISH", a)
	}
	return a, nil
}

// nodes returns the function that makes connections to servers by their addresses, host:port, with
// the credentials, the database and the TLS of a. The replicas of a socket's server are reached over TCP.
func (s *settings) nodes(a *redisurl.Address) redisconn.NodeDial {
	return func(ctx context.Context, addr string) (redis.Conn, error) { return s.dialTo(ctx, a.At(addr), a.Secure) }
}

// dialTo connects to a server with the settings that every connection has.
func (s *settings) dialTo(ctx context.Context, to redisurl.Server, secure bool) (redis.Conn, error) {
	if s.credentials != nil {
		user, password, err := s.credentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("redlatch: credentials: %w", err)
		}
		to.User, to.Password = user, password
	}
	d := respconn.Dialer{Timeout: s.dialTimeout, Write: s.command}
	switch {
	case secure && s.tls != nil:
		d.TLS = s.tls
	case secure:
		d.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return d.Dial(ctx, to)
}

// LimitReplies returns conn with the bounds on what a server may announce that the
// connections of [Open] have: an array or a text that is longer than any answer to
// Redlatch ends the connection with an error, before memory is taken for it. It is for
// dial functions, and must see the first byte that the server sends. It sets no deadlines.
func LimitReplies(conn net.Conn) net.Conn { return respconn.Guard(conn) }

// NewConn returns conn, on which the server is ready for commands, for a dial function to
// return: an alternative to redigo's redis.NewConn. On it, a caller that is alone does its
// own reading and writing, as on the connections of [Open], which with few callers halves
// the time that Redlatch takes for a call; this needs a TCP or Unix socket, with or without
// TLS, and has no effect on Windows and AIX. A write that takes longer than write ends the
// connection; 0 sets no such bound. conn may come from [LimitReplies], and is limited by
// NewConn if not. Nothing is sent. The caller does not use conn any more.
func NewConn(conn net.Conn, write time.Duration) redis.Conn { return respconn.NewConn(conn, write) }
