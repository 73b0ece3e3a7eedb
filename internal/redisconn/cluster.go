package redisconn

import (
	"context"
	"log/slog"
	"time"

	"github.com/gomodule/redigo/redis"

	topology "github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/transport"
)

// ClusterConfig says how the built-in transport to a cluster connects.
type ClusterConfig struct {
	// Nodes are the addresses, host:port, of some nodes.
	Nodes []string
	// Dial makes a connection to the node at addr that is ready to use.
	Dial func(ctx context.Context, addr string) (redis.Conn, error)
	// Sharding is how messages are published.
	Sharding transport.Sharding
	// Command, Lease, DialTimeout, ClientName, Logger and Reconnected are as in RedigoConfig.
	Command, Lease, DialTimeout time.Duration
	ClientName                  string
	Logger                      *slog.Logger
	Reconnected                 func(connection string)
}

// NewCluster returns a transport to a cluster, which dials on first use. With
// transport.ShardingAuto it asks a node how messages are published: ctx bounds that, and
// the error wraps transport.ErrNotSent when no node could be asked.
func NewCluster(ctx context.Context, cfg *ClusterConfig) (*topology.Cluster, error) {
	asker := topology.Asker{Nodes: cfg.Nodes, Dial: cfg.Dial, DialTimeout: cfg.DialTimeout, Reply: cfg.Command}
	publish, err := asker.PublishCommand(ctx, cfg.Sharding)
	if err != nil {
		return nil, err
	}
	name := &naming{name: cfg.ClientName, logger: cfg.Logger}
	dial := func(ctx context.Context, addr, _ string) (redis.Conn, error) {
		return name.named(func(ctx context.Context) (redis.Conn, error) { return cfg.Dial(ctx, addr) })(ctx)
	}
	return topology.New(topology.Config{
		Nodes: func() []string { return cfg.Nodes },
		Dial:  dial, DialPubSub: dial, Publish: publish, Command: cfg.Command,
		ReplyLimit: replyLimit(cfg.Command, cfg.Lease), DialTimeout: cfg.DialTimeout,
		Logger: cfg.Logger, Reconnected: cfg.Reconnected,
	}), nil
}
