package rueidis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/transport"
)

// noScript is the digest of no script.
var noScript = strings.Repeat("0", 40)

// tryAgain is a script whose answer makes a rueidis client look who is in the cluster.
const tryAgain = "return redis.error_reply('TRYAGAIN the client does not know all nodes')"

// clustered is a transport to a cluster.
type clustered struct {
	*cluster.Cluster
	conns  *conns
	closer sync.Once
	err    error
}

var (
	_ transport.Transport   = (*clustered)(nil)
	_ transport.Fencer      = (*clustered)(nil)
	_ transport.Slotter     = (*clustered)(nil)
	_ transport.Reconnecter = (*clustered)(nil)
	_ transport.Counter     = (*clustered)(nil)
	_ transport.Replicator  = (*clustered)(nil)
)

func newClustered(ctx context.Context, client rueidis.Client, set *settings) (*clustered, error) {
	publish, err := set.sharding.PublishCommand(func() error { return countShards(ctx, client) })
	if err != nil {
		return nil, err
	}
	c := &clustered{conns: &conns{}}
	c.Cluster = cluster.New(cluster.Config{
		Nodes: func() []string { return slices.Collect(maps.Keys(client.Nodes())) },
		Dial: func(ctx context.Context, addr, key string) (redis.Conn, error) {
			node, err := nodeOf(ctx, client, addr, key)
			if err != nil {
				return nil, err
			}
			return c.conns.commands(ctx, node, nil)
		},
		DialPubSub: func(ctx context.Context, addr, key string) (redis.Conn, error) {
			node, err := nodeOf(ctx, client, addr, key)
			if err != nil {
				return nil, err
			}
			return c.conns.listening(ctx, node, nil)
		},
		Publish: publish, Command: set.replyLimit / 2, ReplyLimit: set.replyLimit,
		DialTimeout: set.dialTimeout, Logger: set.logger,
	})
	return c, nil
}

// asks is how often the nodes are asked a question that does no harm.
const asks = 3

// countShards asks any node to count the listeners of a shard. A connection that has
// just been lost is no answer, nor a reason to give up.
func countShards(ctx context.Context, client rueidis.Client) (err error) {
	for range asks {
		_, err = received(client.Do(ctx, client.B().Arbitrary("PUBSUB", "SHARDNUMSUB", "0").Build()))
		if isRefusal(err) {
			return &transport.ServerError{Text: err.Error()}
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// nodeOf returns the client to the node at addr. The client does not know one that has
// joined the cluster until it is sent there, so it is made to ask for a script that
// nobody has, with a key that the node may serve. If that does not help, as with
// replicas, it is made to look anew, which it does within a second, and nodeOf fails
// for now.
func nodeOf(ctx context.Context, client rueidis.Client, addr, key string) (rueidis.Client, error) {
	if node := client.Nodes()[addr]; node != nil {
		return node, nil
	}
	if key != "" {
		hint(ctx, client, client.B().Arbitrary("EVALSHA", noScript, "1").Keys(key).Build())
	}
	if node := client.Nodes()[addr]; node != nil {
		return node, nil
	}
	hint(ctx, client, client.B().Arbitrary("EVAL", tryAgain, "0").Build())
	return nil, fmt.Errorf("%w: %s", errUnknownNode, addr)
}

// hinted bounds one question that a client learns from. Whom it asks may be the node that
// stands still, and that another has replaced.
const hinted = 300 * time.Millisecond

// hint lets client learn from a server's answer.
func hint(ctx context.Context, client rueidis.Client, question rueidis.Completed) {
	ctx, cancel := context.WithTimeout(ctx, hinted)
	defer cancel()
	_ = client.Do(ctx, question).Error() // always one
}

var errUnknownNode = errors.New("the rueidis client does not know the node yet")

// Close is part of transport.Transport. It leaves the rueidis client as it is.
func (c *clustered) Close() error {
	c.closer.Do(func() {
		c.err = c.Cluster.Close()
		c.conns.wait()
	})
	return c.err
}
