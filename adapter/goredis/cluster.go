package goredis

import (
	"context"
	"errors"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
)

// errNoCluster is for clients whose nodes are not in a cluster.
var errNoCluster = errors.New("goredis: a ClusterClient with ClusterSlots of its own, as NewFailoverClusterClient makes, is in no Redis Cluster: use NewFailoverClient")

// errNoClient is for a NewClient of the user's that does not do what it is there for.
var errNoClient = errors.New("goredis: the ClusterClient's NewClient has made no client")

// newCluster makes a client of a cluster.
func newCluster(ctx context.Context, c *redis.ClusterClient, opts []redlatch.Option) (*redlatch.Client, error) {
	opt := c.Options()
	if opt.ClusterSlots != nil {
		return nil, errNoCluster
	}
	n := &nodes{options: opt}
	return redlatch.NewCluster(ctx, opt.Addrs, n.dial, append([]redlatch.Option{dialTimeout(opt.DialTimeout)}, opts...)...)
}

// nodes makes connections to the nodes of a cluster.
type nodes struct {
	options *redis.ClusterOptions
}

// dial connects to the node at addr. What go-redis would make of the client of a node, the
// user's NewClient included, is made and asked for its settings: that costs no I/O.
func (n *nodes) dial(ctx context.Context, addr string) (redigo.Conn, error) {
	node := n.options.NewClient(n.settings(addr))
	if node == nil {
		return nil, errNoClient
	}
	opt := *node.Options()
	_ = node.Close() // it has nothing
	return dial(ctx, opt)
}

// settings returns what the client's options say of the connections to a node.
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
		DisableIdentity:              o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // an old name, but one that users may have
		IdentitySuffix:               o.IdentitySuffix,
	})
}
