package goredis

import (
	"context"
	"errors"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
)

var errNoCluster = errors.New("goredis: a ClusterClient with ClusterSlots of its own, as NewFailoverClusterClient makes, is in no Redis Cluster: use NewFailoverClient")

var errNoClient = errors.New("goredis: the ClusterClient's NewClient has made no client")

func newCluster(ctx context.Context, c *redis.ClusterClient, opts []redlatch.Option) (*redlatch.Client, error) {
	opt := c.Options()
	if opt.ClusterSlots != nil {
		return nil, errNoCluster
	}
	n := &nodes{options: opt}
	return redlatch.NewCluster(ctx, opt.Addrs, n.dial, append([]redlatch.Option{dialTimeout(opt.DialTimeout)}, opts...)...)
}

// nodes connects to the nodes of a cluster.
type nodes struct {
	options *redis.ClusterOptions
}

// dial connects to the node at addr, with the settings of the client that NewClient makes for it, which
// does no I/O.
func (n *nodes) dial(ctx context.Context, addr string) (redigo.Conn, error) {
	node := n.options.NewClient(n.settings(addr))
	if node == nil {
		return nil, errNoClient
	}
	opt := *node.Options()
	_ = node.Close()
	return dial(ctx, opt)
}

// settings returns the options for connections to a node.
func (n *nodes) settings(addr string) *redis.Options {
	o := n.options
	return handshake(redis.Options{
		Addr: addr, ClientName: o.ClientName, Dialer: o.Dialer, OnConnect: o.OnConnect,
		Username: o.Username, Password: o.Password,
		CredentialsProvider:          o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DialTimeout:                  o.DialTimeout,
		TLSConfig:                    o.TLSConfig,
		DisableIdentity:              o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // users may set the old name
		IdentitySuffix:               o.IdentitySuffix,
	})
}
