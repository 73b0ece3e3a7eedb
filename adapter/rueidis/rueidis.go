package rueidis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// New returns a transport over client, for redlatch.NewWithTransport: to one server,
// to the master that Sentinel names, or to a cluster, whatever client leads to. The
// transport takes connections of its own from client and gives them back when it is
// closed. It never closes client, which must stay open until then.
//
// To a cluster New sends PUBSUB SHARDNUMSUB, unless [WithShardedPubSub] decides, and
// returns an error when nobody answers before ctx ends. Otherwise it does no I/O. It
// panics when ctx is nil.
func New(ctx context.Context, client rueidis.Client, opts ...Option) (transport.Transport, error) {
	if ctx == nil {
		panic("rueidis: nil Context")
	}
	if client == nil {
		return nil, errors.New("rueidis: New needs a client")
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	switch mode := client.Mode(); mode {
	case rueidis.ClientModeStandalone, rueidis.ClientModeSentinel:
		return newSingle(client, &set, mode == rueidis.ClientModeSentinel), nil
	case rueidis.ClientModeCluster:
		c, err := newClustered(ctx, client, &set)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return c, nil
	default:
		return nil, fmt.Errorf("rueidis: no transport for a client of mode %q", mode)
	}
}

// single is a transport to one master at a time.
type single struct {
	*redisconn.Redigo
	conns  *conns
	watch  *watch // nil: the master stays the same
	closer sync.Once
	err    error
}

var (
	_ transport.Transport   = (*single)(nil)
	_ transport.Fencer      = (*single)(nil)
	_ transport.Reconnecter = (*single)(nil)
	_ transport.Counter     = (*single)(nil)
	_ transport.Replicator  = (*single)(nil)
)

func newSingle(client rueidis.Client, set *settings, sentinel bool) *single {
	s := &single{conns: &conns{}}
	if sentinel {
		s.watch = newWatch(client, s.conns, set.logger)
	}
	d := &dialer{conns: s.conns, client: client, watch: s.watch, server: set.server}
	cfg := redisconn.Config{
		Dial: d.commands, DialPubSub: d.listening,
		// The reply limit is the lesser of twice the one and a quarter of the other.
		Command: set.replyLimit / 2, Lease: 4 * set.replyLimit, DialTimeout: set.dialTimeout, Logger: set.logger,
	}
	if set.server != nil {
		cfg.DialReplica = d.replica
	}
	s.Redigo = redisconn.NewRedigo(cfg)
	if sentinel {
		s.watch.begin(s.Redigo)
	}
	return s
}

// Close is part of transport.Transport. It leaves the rueidis client as it is.
func (s *single) Close() error {
	s.closer.Do(func() {
		s.watch.stop()
		s.err = s.Redigo.Close()
		s.conns.wait()
	})
	return s.err
}

// dialer makes connections of a client's.
type dialer struct {
	conns  *conns
	client rueidis.Client
	watch  *watch // nil: the master stays the same
	server func(ctx context.Context, addr string) (rueidis.Client, error)
}

func (d *dialer) commands(ctx context.Context) (redis.Conn, error) {
	client, end, err := d.master(ctx)
	if err != nil {
		return nil, err
	}
	return d.conns.commands(ctx, client, end)
}

func (d *dialer) listening(ctx context.Context) (redis.Conn, error) {
	client, end, err := d.master(ctx)
	if err != nil {
		return nil, err
	}
	return d.conns.listening(ctx, client, end)
}

// replica connects to a replica over a client that ends with the connection.
func (d *dialer) replica(ctx context.Context, addr string) (redis.Conn, error) {
	client, err := d.server(ctx, addr)
	if err != nil {
		return nil, err
	}
	return d.conns.commands(ctx, client, client.Close)
}

func (c *conns) commands(ctx context.Context, client rueidis.Client, end func()) (redis.Conn, error) {
	d, err := c.take(ctx, client, end)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return newCommands(d), nil
}

func (c *conns) listening(ctx context.Context, client rueidis.Client, end func()) (redis.Conn, error) {
	d, err := c.take(ctx, client, end)
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx, d)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return l, nil
}
