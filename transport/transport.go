package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
)

// Done receives the outcome of a call: the reply (nil, int64, string, []byte or []any of these and
// *ServerError), or one of the errors listed in the package comment. It may run inside Start. It must
// not block; it may start other calls.
type Done func(reply any, err error)

// Transport is the connection to a Redis or Valkey deployment. It is safe for concurrent use.
type Transport interface {
	// Start sends call as soon as possible and runs done exactly once, possibly before
	// Start returns. It never blocks.
	Start(call *Call, done Done)

	// Subscribe subscribes to channel on the node that publishes to it, and returns when the server has
	// acknowledged it. Each call returns a separate Subscription. The error is ctx's error or one of
	// those listed in the package comment.
	Subscribe(ctx context.Context, channel string) (Subscription, error)

	// PublishCommand returns the command with which scripts publish: PUBLISH, or SPUBLISH in
	// a cluster whose Redisson peers use sharded pub/sub.
	PublishCommand() string

	// Close closes all connections and waits for all goroutines. Calls in flight end with ErrUncertain and other calls
	// with ErrNotSent, and both errors also wrap ErrClosed; subscriptions end with ErrClosed. It may be called more
	// than once.
	Close() error
}

// Subscription is one listener on one channel.
type Subscription interface {
	// Events delivers events. It buffers one event, which counts the events dropped after it. It is
	// closed when the subscription has failed; Err then returns the reason.
	Events() <-chan Event

	// Err returns nil until Events is closed, and then the reason.
	Err() error

	// Close ends the subscription. It does not wait for the server or close Events, and may be
	// called more than once.
	Close()
}

// Event is a reason to query the server. It is either a message or a gap.
type Event struct {
	// Gap is true if messages may have been missed before the subscription was restored.
	Gap bool

	// Payload is the text of the message unless Gap is true.
	Payload string

	// Coalesced is the number of events dropped after this one. If a transport does not count them, it is 0,
	// and a process may yield to other processes for longer than necessary.
	Coalesced int
}

// Fencer is implemented by transports that can ensure that an uncertain call will not run later.
type Fencer interface {
	// Fence kills the connection on which call was sent, with CLIENT KILL. If it returns nil, the call
	// has either run or never will. After an error, caused for example by an unknown connection ID, a
	// missing permission or an unreachable server, the call is still uncertain.
	Fence(ctx context.Context, call *Call) error
}

// HashSlot returns the hash slot, 0 to 16383, of a key or shard channel, for implementations of
// [Slotter].
func HashSlot(key string) int { return limits.HashSlot(key) }

// Slotter is implemented by transports for a cluster.
type Slotter interface {
	// Slot returns the hash slot of key, by which calls for several locks are grouped.
	Slot(key string) int
}

// Reconnecter is implemented by transports that report reconnects.
type Reconnecter interface {
	// Reconnected returns a channel that is closed at the next reconnect of a command
	// connection.
	Reconnected() <-chan struct{}
}

// Counter is implemented by transports that can count subscribers.
type Counter interface {
	// Listeners returns the number of connections subscribed to each channel, in order: the sum over
	// all nodes that the publish command reaches. It returns early if ctx ends. If a node did not reply
	// or rejected the command, it returns only an error: a zero would mean that a waiter is dead. If
	// there are no channels, it sends nothing.
	Listeners(ctx context.Context, channels ...string) ([]int64, error)
}

// Replicator is implemented by transports that can wait for replicas.
type Replicator interface {
	// Replicate is like Start, but for a call that writes. done runs like a [Done], once the
	// requested number of replicas have the writes or timeout has expired, and also receives the
	// number of replicas. They are counted by a WAIT sent after the call on the same connection,
	// which must not delay other calls. The call must be idempotent, since it may be retried after a
	// lost reply. After an error, the number of replicas is unknown.
	Replicate(call *Call, replicas int, timeout time.Duration, done func(reply any, have int64, err error))
}

// Sharding selects how messages are published in a cluster: with SPUBLISH to the nodes of one
// shard, or with PUBLISH to all nodes. Each reaches only its own kind of subscribers, so all
// clients must use the same mode. Redisson calls it shardedSubscriptionMode.
type Sharding uint8

const (
	// ShardingAuto uses SPUBLISH if the server can count the subscribers to shard channels, as Redis 7
	// and Valkey can. It is the default in Redisson.
	ShardingAuto Sharding = iota
	// ShardingOn always uses SPUBLISH.
	ShardingOn
	// ShardingOff always uses PUBLISH.
	ShardingOff
)

// String returns the name that Redisson uses: AUTO, ON or OFF.
func (s Sharding) String() string {
	switch s {
	case ShardingAuto:
		return "AUTO"
	case ShardingOn:
		return "ON"
	case ShardingOff:
		return "OFF"
	}
	return fmt.Sprintf("Sharding(%d)", uint8(s))
}
