package rueidis

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/transport"
)

// Option sets something about a transport. Each option's comment gives its unit and
// its default.
type Option func(*settings)

type settings struct {
	logger      *slog.Logger
	sharding    transport.Sharding
	replyLimit  time.Duration
	dialTimeout time.Duration
	server      func(ctx context.Context, addr string) (rueidis.Client, error)
}

// leastReplyLimit is less than which no server can be relied on to answer, and
// mostReplyLimit more than anybody can have meant.
const (
	leastReplyLimit = 500 * time.Millisecond
	mostReplyLimit  = time.Hour
)

func configure(opts []Option) (settings, error) {
	s := settings{logger: slog.New(slog.DiscardHandler), replyLimit: 6 * time.Second, dialTimeout: 5 * time.Second}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	switch {
	case s.replyLimit < leastReplyLimit:
		return s, fmt.Errorf("rueidis: a reply limit of %v is less than %v", s.replyLimit, leastReplyLimit)
	case s.replyLimit > mostReplyLimit:
		return s, fmt.Errorf("rueidis: a reply limit of %v is more than %v", s.replyLimit, mostReplyLimit)
	case s.dialTimeout <= 0:
		return s, fmt.Errorf("rueidis: a dial timeout of %v leaves no time", s.dialTimeout)
	case s.sharding > transport.ShardingOff:
		return s, fmt.Errorf("rueidis: there is no %v", s.sharding)
	}
	return s, nil
}

// WithLogger sets where connections made and lost are logged. Default: nowhere. The zero
// Logger, which logs nowhere, changes nothing.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil && l.Handler() != nil {
			s.logger = l
		}
	}
}

// WithShardedPubSub sets how messages are published in a cluster. It must be the same
// in the whole fleet: Redisson calls it shardedSubscriptionMode. Default:
// transport.ShardingAuto. Elsewhere than in a cluster it has no effect.
func WithShardedPubSub(s transport.Sharding) Option { return func(set *settings) { set.sharding = s } }

// WithReplyLimit sets how long a connection may owe a reply, while none comes to any
// other call on it, until it is given up and made anew. It takes the place of the
// client's ConnWriteTimeout, and should be twice redlatch.WithCommandTimeout, but no
// more than a quarter of the shortest lease. Default 6 s; from 500 ms to an hour.
func WithReplyLimit(d time.Duration) Option { return func(s *settings) { s.replyLimit = d } }

// WithDialTimeout bounds the wait for a connection from the rueidis client, which
// makes one, or waits until one of its pool (BlockingPoolSize) is free. Default 5 s.
func WithDialTimeout(d time.Duration) Option { return func(s *settings) { s.dialTimeout = d } }

// WithClientOption tells the options that client was made with, of which a client does
// not speak itself. With them the transport can reach servers that the client does not
// lead to, over a client of its own for each. In a cluster that is not needed.
// Elsewhere there are two uses:
//
//   - When Sentinel has named another master, the transport goes there at once. Without
//     this option it drops its connections to the former master all the same, and then
//     waits, connected to nobody, until the client has turned: five seconds, in a
//     failover that was measured.
//   - The check that tells dead waiters of fair locks from live ones has to ask every
//     node on which somebody may listen. Without this option it works only as long as
//     the master has no replicas.
//
// Of opt the address, and all that concerns Sentinels, replicas and caches, is left out.
// Default: none.
func WithClientOption(opt rueidis.ClientOption) Option {
	return func(s *settings) {
		s.server = func(ctx context.Context, addr string) (rueidis.Client, error) {
			return reach(ctx, serverOption(opt, addr))
		}
	}
}

// WithServerClient is [WithClientOption] for servers that are reached in another way
// than the client's: dial makes a client to the server at addr, host:port, which the
// transport closes. Of the two options the last one counts. Default: none. A dial that
// returns neither a client nor an error has failed.
func WithServerClient(dial func(ctx context.Context, addr string) (rueidis.Client, error)) Option {
	if dial == nil {
		return func(s *settings) { s.server = nil }
	}
	return func(s *settings) {
		s.server = func(ctx context.Context, addr string) (rueidis.Client, error) {
			client, err := dial(ctx, addr)
			if err == nil && client == nil {
				err = fmt.Errorf("rueidis: WithServerClient's function has made no client to %s", addr)
			}
			return client, err
		}
	}
}

// serverOption returns the options of a client to the one server at addr, made of those
// of a client that leads elsewhere.
func serverOption(opt rueidis.ClientOption, addr string) rueidis.ClientOption {
	opt.InitAddress, opt.ForceSingleClient = []string{addr}, true
	opt.Sentinel, opt.Standalone, opt.ClusterOption = rueidis.SentinelOption{}, rueidis.StandaloneOption{}, rueidis.ClusterOption{}
	opt.ReplicaOnly, opt.SendToReplicas = false, nil
	opt.ReplicaSelector, opt.ReadNodeSelector = nil, nil //nolint:staticcheck // an old name, but one that users may have
	opt.DisableCache, opt.OnInvalidations, opt.NewCacheStoreFn = true, nil, nil
	opt.PipelineMultiplex = -1 // one connection: it takes those that it uses besides
	return opt
}

// reach makes a client, for which rueidis dials and cannot be stopped: one that comes
// when ctx has ended is closed.
func reach(ctx context.Context, opt rueidis.ClientOption) (rueidis.Client, error) {
	type outcome struct {
		client rueidis.Client
		err    error
	}
	came := make(chan outcome)
	go func() {
		client, err := rueidis.NewClient(opt)
		select {
		case came <- outcome{client, err}:
		case <-ctx.Done():
			if err == nil {
				client.Close()
			}
		}
	}()
	select {
	case o := <-came:
		return o.client, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("rueidis: no connection to %s: %w", opt.InitAddress[0], context.Cause(ctx))
	}
}
