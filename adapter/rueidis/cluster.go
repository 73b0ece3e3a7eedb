package rueidis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/transport"
)

// noScript is the digest of no script.
var noScript = strings.Repeat("0", 40)

// tryAgain is a script whose answer makes a rueidis client ask for the nodes of the
// cluster.
const tryAgain = "return redis.error_reply('TRYAGAIN the client does not know all nodes')"

// anyKey is the key of tryAgain: some servers refuse scripts without keys.
const anyKey = "06S"

// newCluster makes a client of a cluster.
func newCluster(ctx context.Context, client rueidis.Client, opts []redlatch.Option) (*redlatch.Client, error) {
	seeds := slices.Sorted(maps.Keys(client.Nodes()))
	return redlatch.NewCluster(ctx, seeds, func(ctx context.Context, addr string) (redis.Conn, error) {
		node, err := nodeOf(ctx, client, addr, keyOn)
		if err != nil {
			return nil, err
		}
		return take(ctx, node)
	}, opts...)
}

// nodeOf returns the client to the node at addr. The client does not know one that has
// joined the cluster until it is sent there, so it is made to ask for a script that no
// server has, with a key that the node serves, if there is one. If that does not help, as
// with replicas, it is made to look anew, which it does within a second, and nodeOf fails
// for now.
func nodeOf(
	ctx context.Context, client rueidis.Client, addr string, keyOn func(context.Context, rueidis.Client, string) string,
) (rueidis.Client, error) {
	if node := client.Nodes()[addr]; node != nil {
		return node, nil
	}
	if key := keyOn(ctx, client, addr); key != "" {
		hint(ctx, client, client.B().Arbitrary("EVALSHA", noScript, "1").Keys(key).Build())
	}
	if node := client.Nodes()[addr]; node != nil {
		return node, nil
	}
	hint(ctx, client, client.B().Arbitrary("EVAL", tryAgain, "1").Keys(anyKey).Build())
	return nil, fmt.Errorf("%w: %s", errUnknownNode, addr)
}

// slots is how many there are in a cluster.
const slots = 16384

// keyOn returns a key in a slot that the node at addr serves as the master, "" when no
// node tells of one.
func keyOn(ctx context.Context, client rueidis.Client, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, hinted)
	defer cancel()
	all, _ := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	for i := range all {
		first, last, master := span(&all[i])
		if master == addr {
			return keyIn(first, last)
		}
	}
	return ""
}

// span returns the slots that an entry in the reply to CLUSTER SLOTS is about, and the
// address of their master, "" when there is none in it.
func span(entry *rueidis.RedisMessage) (first, last int64, master string) {
	parts, _ := entry.ToArray()
	if len(parts) < 3 {
		return 0, 0, ""
	}
	first, _ = parts[0].ToInt64()
	last, _ = parts[1].ToInt64()
	at, _ := parts[2].ToArray()
	if len(at) < 2 {
		return 0, 0, ""
	}
	host, _ := at[0].ToString()
	port, _ := at[1].ToInt64()
	return first, last, net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

// keyIn returns a key in one of the slots from first to last, "" when it has found none.
func keyIn(first, last int64) string {
	for i := range 64 * slots {
		key := strconv.Itoa(i)
		if slot := int64(transport.HashSlot(key)); first <= slot && slot <= last {
			return key
		}
	}
	return ""
}

// hinted bounds one question that a client learns from. The node that it asks may be
// stopped, and another may have replaced it.
const hinted = 300 * time.Millisecond

// hint lets client learn from a server's answer.
func hint(ctx context.Context, client rueidis.Client, question rueidis.Completed) {
	ctx, cancel := context.WithTimeout(ctx, hinted)
	defer cancel()
	_ = client.Do(ctx, question).Error() // always one
}

var errUnknownNode = errors.New("the rueidis client does not know the node yet")
