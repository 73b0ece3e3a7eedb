package redlatch

import (
	"context"
	"fmt"
	"net"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/address"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/roundtrip"
	"github.com/redlatch/redlatch/transport"
)

// nodeDialer makes connections to servers of a deployment, by their addresses.
type nodeDialer = func(ctx context.Context, addr string) (redis.Conn, error)

// deployed returns the transport to the cluster, or to the master that Sentinels name,
// at rawURL, which has answered.
func (s *settings) deployed(ctx context.Context, rawURL string) (transport.Transport, error) {
	d, err := address.ParseDeployment(rawURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("redlatch: %w", err)
	case s.tls != nil && !d.Secure:
		// It would be plain text, and nobody would notice.
		return nil, fmt.Errorf("redlatch: address %s: WithTLSConfig needs an address with the scheme rediss-cluster or rediss-sentinel",
			address.Show(rawURL))
	}
	open := s.cluster
	if d.Master != "" {
		open = s.sentinel
	}
	t, err := open(ctx, d)
	if err == nil {
		if err = roundtrip.Ping(ctx, t); err == nil {
			return t, nil
		}
		_ = t.Close() // the error that matters is why it does not answer
	}
	return nil, notConnected(rawURL, err)
}

// notConnected says where a connection could not be made to.
func notConnected(rawURL string, err error) error {
	return fmt.Errorf("redlatch: connect to %s: %w", address.Show(rawURL), err)
}

// cluster returns the transport to a cluster.
func (s *settings) cluster(ctx context.Context, d *address.Deployment) (transport.Transport, error) {
	c, err := redisconn.NewCluster(ctx, &redisconn.ClusterConfig{
		Nodes: d.Hosts, Dial: s.nodes(way{secure: d.Secure}, d), Sharding: sharding[d.Sharding],
		Command: s.command, Lease: s.watchdog, DialTimeout: s.dialTimeout,
		ClientName: s.clientName, Logger: s.logger, Reconnected: s.reconnected(),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// sharding is what the words for it in an address mean.
var sharding = map[string]transport.Sharding{
	"": transport.ShardingAuto, "auto": transport.ShardingAuto, "on": transport.ShardingOn, "off": transport.ShardingOff,
}

// sentinel returns the transport to a master that Sentinels name.
func (s *settings) sentinel(_ context.Context, d *address.Deployment) (transport.Transport, error) {
	ask := s.sentinels(d)
	live := &failover.Live{}
	dial := func(ctx context.Context) (redis.Conn, error) {
		addr, err := ask.Master(ctx)
		if err != nil {
			return nil, fmt.Errorf("redlatch: the Sentinels do not name the master: %w", err)
		}
		w := way{secure: d.Secure, through: func(conn net.Conn) net.Conn { return live.Add(conn, addr) }}
		return s.nodes(w, d)(ctx, addr)
	}
	if s.dialReplica == nil {
		s.dialReplica = s.nodes(way{secure: d.Secure}, d)
	}
	return failover.New(failover.Config{Redigo: redigoTransport(dial, s), Live: live, Present: ask.Master, Logger: s.logger}), nil
}

// sentinels returns what asks the Sentinels, who have users of their own.
func (s *settings) sentinels(d *address.Deployment) *failover.Sentinels {
	alone := *s
	alone.credentials = nil
	return failover.NewSentinels(d.Master, d.Hosts, alone.nodes(way{secure: d.Secure}, &address.Deployment{
		User: d.SentinelUser, Password: d.SentinelPassword,
	}))
}

// nodes returns what makes connections to servers of a deployment.
func (s *settings) nodes(w way, d *address.Deployment) nodeDialer {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		return s.withOptions(w, func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
			opts = append([]redis.DialOption{
				redis.DialDatabase(d.DB), redis.DialUsername(d.User), redis.DialPassword(d.Password),
			}, opts...)
			return redis.DialContext(ctx, "tcp", addr, opts...)
		})(ctx)
	}
}
