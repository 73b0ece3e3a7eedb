package redlatch

import (
	"context"
	"fmt"

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
	return s.clusterOf(ctx, d.Hosts, s.nodes(d.Secure, d), sharding[d.Sharding])
}

// clusterOf returns the transport to a cluster whose nodes dial connects to.
func (s *settings) clusterOf(ctx context.Context, seeds []string, dial nodeDialer, publish transport.Sharding) (transport.Transport, error) {
	cfg := s.conn()
	c, err := redisconn.NewCluster(ctx, seeds, dial, publish, &cfg)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return c, nil
}

// sharding is what the words for it in an address mean.
var sharding = map[string]transport.Sharding{
	"": transport.ShardingAuto, "auto": transport.ShardingAuto, "on": transport.ShardingOn, "off": transport.ShardingOff,
}

// sentinel returns the transport to a master that Sentinels name.
func (s *settings) sentinel(_ context.Context, d *address.Deployment) (transport.Transport, error) {
	// Sentinels have users of their own.
	alone := *s
	alone.credentials = nil
	ask := alone.nodes(d.Secure, &address.Deployment{User: d.SentinelUser, Password: d.SentinelPassword})
	return s.masterOf(failover.NewSentinels(d.Master, d.Hosts, ask).Master, s.nodes(d.Secure, d)), nil
}

// masterOf returns the transport to the server that master names, which dial connects to.
func (s *settings) masterOf(master func(context.Context) (string, error), dial nodeDialer) transport.Transport {
	cfg := s.conn()
	if cfg.DialReplica == nil {
		cfg.DialReplica = dial
	}
	return failover.New(failover.Config{Master: master, Dial: dial, Conn: cfg})
}

// nodes returns what makes connections to servers of a deployment.
func (s *settings) nodes(secure bool, d *address.Deployment) nodeDialer {
	return func(ctx context.Context, addr string) (redis.Conn, error) {
		return s.withOptions(secure, func(ctx context.Context, opts []redis.DialOption) (redis.Conn, error) {
			opts = append([]redis.DialOption{
				redis.DialDatabase(d.DB), redis.DialUsername(d.User), redis.DialPassword(d.Password),
			}, opts...)
			return redis.DialContext(ctx, "tcp", addr, opts...)
		})(ctx)
	}
}
