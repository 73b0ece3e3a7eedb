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

var noScript = strings.Repeat("0", 40)

// tryAgain is a script whose error makes a rueidis client refresh its list of nodes.
const tryAgain = "return redis.error_reply('TRYAGAIN the client does not know all nodes')"

// anyKey is the key of tryAgain, because some servers reject scripts without keys.
const anyKey = "06S"

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

// nodeOf returns the client for the node at addr. A rueidis client learns of a new node only from a redirection, so
// nodeOf provokes one with a key on that node. If the node is still unknown, as a replica would be, nodeOf triggers a
// refresh and returns an error. A later call may succeed.
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

const slots = 16384

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

func keyIn(first, last int64) string {
	for i := range 64 * slots {
		key := strconv.Itoa(i)
		if slot := int64(transport.HashSlot(key)); first <= slot && slot <= last {
			return key
		}
	}
	return ""
}

const hinted = 300 * time.Millisecond

func hint(ctx context.Context, client rueidis.Client, question rueidis.Completed) {
	ctx, cancel := context.WithTimeout(ctx, hinted)
	defer cancel()
	_ = client.Do(ctx, question).Error() // there is always an error
}

var errUnknownNode = errors.New("the rueidis client does not know the node yet")
