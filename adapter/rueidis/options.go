package rueidis

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/transport"
)

// Option sets something about a transport. Each option's comment gives its unit and
// its default.
type Option func(*settings)

type settings struct {
	command     time.Duration
	dialTimeout time.Duration
	logger      *slog.Logger
	replica     func(ctx context.Context, addr string) (rueidis.Client, error)
	sharding    transport.Sharding
}

func configure(opts []Option) settings {
	s := settings{command: 3 * time.Second, dialTimeout: 5 * time.Second, logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// lease is the shortest lease that connections are watched for; see [WithCommandTimeout].
const lease = 30 * time.Second

// WithCommandTimeout tells the transport the command timeout of the Redlatch client
// that it is for: a connection on which nothing was answered for twice as long is
// given up, whatever the rueidis client's own timeouts are. Default 3 s.
func WithCommandTimeout(d time.Duration) Option { return func(s *settings) { s.command = d } }

// WithDialTimeout bounds the wait for a connection from the rueidis client, which
// makes one, or waits until one of its pool (BlockingPoolSize) is free. Default 5 s.
func WithDialTimeout(d time.Duration) Option { return func(s *settings) { s.dialTimeout = d } }

// WithLogger sets where connections made and lost are told of. Default: nowhere.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil {
			s.logger = l
		}
	}
}

// WithShardedPubSub sets how messages are published in a cluster. It must be the same
// in the whole fleet: Redisson calls it shardedSubscriptionMode. Default
// transport.ShardingAuto, as Redisson's.
func WithShardedPubSub(s transport.Sharding) Option { return func(set *settings) { set.sharding = s } }

// WithReplicaClient sets how the replicas of a master that is in no cluster are
// reached: a client to the server at addr, host:port, which the transport closes. It
// is for the check that tells dead waiters of fair locks from live ones, which has to
// ask every node on which somebody may listen: without this option it works only as
// long as the master has no replicas, since a rueidis client does not lead to them.
// In a cluster it is not needed. Default: none.
func WithReplicaClient(dial func(ctx context.Context, addr string) (rueidis.Client, error)) Option {
	return func(s *settings) { s.replica = dial }
}
