package redisconn

import (
	"context"

	"github.com/gomodule/redigo/redis"

	topology "github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/transport"
)

// NodeDial makes a connection to the server at addr, host:port, that is ready to use.
type NodeDial = func(ctx context.Context, addr string) (redis.Conn, error)

// NewCluster returns a transport to the cluster of the nodes at seeds, host:port, which
// dials on first use. Dial makes a connection to the node at addr that is ready to use;
// the dial functions of cfg are not used. With transport.ShardingAuto it asks a node how
// messages are published: ctx bounds that, and the error wraps transport.ErrNotSent when
// no node could be asked.
func NewCluster(ctx context.Context, seeds []string, dial NodeDial, sharding transport.Sharding, cfg *Config) (*topology.Cluster, error) {
	asker := topology.Asker{Nodes: seeds, Dial: dial, Conn: cfg}
	publish, err := asker.PublishCommand(ctx, sharding)
	if err != nil {
		return nil, err
	}
	name := &naming{name: cfg.ClientName, logger: cfg.Logger}
	node := func(ctx context.Context, addr string) (redis.Conn, error) {
		return name.named(func(ctx context.Context) (redis.Conn, error) { return dial(ctx, addr) })(ctx)
	}
	return topology.New(topology.Config{Seeds: seeds, Dial: node, Publish: publish, Conn: *cfg}), nil
}
