package rueidis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/transport"
)

// New returns a transport over client, for redlatch.NewWithTransport: to one server,
// to the master that Sentinel names, or to a cluster, whatever client leads to. The
// transport takes connections of its own from client and gives them back when it is
// closed. It never closes client, which must stay open until then.
//
// To a cluster New sends PUBSUB SHARDNUMSUB, unless [WithShardedPubSub] decides, and
// returns an error when nobody answers before ctx ends. Otherwise it does no I/O.
func New(ctx context.Context, client rueidis.Client, opts ...Option) (transport.Transport, error) {
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
	*core.Redigo
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
)

func newSingle(client rueidis.Client, set *settings, sentinel bool) *single {
	s := &single{conns: &conns{}}
	d := &dialer{conns: s.conns, client: client, replica: set.replica}
	cfg := core.RedigoConfig{
		Dial: d.commands, DialPubSub: d.listening,
		// The reply limit is the lesser of twice the one and a quarter of the other.
		Command: set.replyLimit / 2, Lease: 4 * set.replyLimit, DialTimeout: set.dialTimeout, Logger: set.logger,
	}
	if set.replica != nil {
		cfg.DialReplica = d.toReplica
	}
	s.Redigo = core.NewRedigo(cfg)
	if sentinel {
		s.watch = watchMaster(client, s.conns, set.logger)
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
	conns   *conns
	client  rueidis.Client
	replica func(ctx context.Context, addr string) (rueidis.Client, error)
}

func (d *dialer) commands(ctx context.Context) (redis.Conn, error) {
	return d.conns.commands(ctx, d.client)
}

func (d *dialer) listening(ctx context.Context) (redis.Conn, error) {
	return d.conns.listening(ctx, d.client)
}

// toReplica connects to a replica over a client that ends with the connection.
func (d *dialer) toReplica(ctx context.Context, addr string) (redis.Conn, error) {
	client, err := d.replica(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn, err := d.conns.commands(ctx, client)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &borrowed{conn, client}, nil
}

// borrowed is a connection whose client is closed with it.
type borrowed struct {
	*commands
	client rueidis.Client
}

// Close implements redis.Conn.
func (b *borrowed) Close() error {
	err := b.commands.Close()
	b.conns.wg.Go(b.client.Close)
	return err
}

func (c *conns) commands(ctx context.Context, client rueidis.Client) (*commands, error) {
	d, err := c.take(ctx, client)
	if err != nil {
		return nil, err
	}
	return newCommands(d), nil
}

func (c *conns) listening(ctx context.Context, client rueidis.Client) (redis.Conn, error) {
	d, err := c.take(ctx, client)
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx, d)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return l, nil
}
