package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
)

// Done receives the outcome of a call: the reply (nil, int64, string, []byte or
// []any with these and *ServerError inside) or an error of the package's error
// contract. It runs
// on a goroutine of the transport, or, for a call given to [Leader.Lead], on that
// call's caller's, and must return at once: it may start other
// calls, but must not wait for anything.
type Done func(reply any, err error)

// Transport is a connection, or a set of them, to one Redis or Valkey
// deployment. All methods are safe for concurrent use.
type Transport interface {
	// Start sends call as soon as it can and runs done exactly once. It never
	// blocks. Before it returns, done has not necessarily run, nor has it
	// necessarily not.
	Start(call *Call, done Done)

	// Subscribe listens to channel, on the node that publishes to it, and
	// returns after the server has acknowledged it: a message published after
	// that is seen. Each call makes a Subscription of its own, however many
	// there are for one channel. An error is the context's, or one of the
	// package's error contract.
	Subscribe(ctx context.Context, channel string) (Subscription, error)

	// PublishCommand is the command that scripts publish with: PUBLISH, or
	// SPUBLISH where the deployment is a cluster with sharded pub/sub and its
	// Redisson peers use it.
	PublishCommand() string

	// Close ends every connection. Calls in flight end with ErrUncertain, calls
	// not sent with ErrNotSent, both together with ErrClosed; subscriptions end
	// with ErrClosed. It returns when nothing of the transport runs any more,
	// and may be called more than once.
	Close() error
}

// Subscription is one listener on one channel.
type Subscription interface {
	// Events delivers wake-ups. It holds one: an event that finds it full is
	// dropped, since the one inside wakes the listener already, and counted there.
	// It is closed when the subscription has failed for good; Err then says why.
	Events() <-chan Event

	// Err returns nil while the subscription works, and why it ended after
	// Events was closed.
	Err() error

	// Close stops listening. It does not wait for the server, does not close
	// Events, and may be called more than once.
	Close()
}

// Event is a reason to look at the server again: a message, or a gap.
type Event struct {
	// Gap is true when messages may have been missed, because the subscription
	// was lost and has just been made anew.
	Gap bool

	// Payload is the message's text when Gap is false.
	Payload string

	// Coalesced is how many events were dropped since this one was sent. A transport
	// that does not count them leaves it 0: then a process may give way to others
	// for longer than it would have to.
	Coalesced int
}

// Fencer is implemented by transports that can make sure a call whose outcome
// is uncertain will not run any more.
type Fencer interface {
	// Fence kills, on the server, the connection that call was sent on. After
	// a nil error the call has either run already or never will. Any other
	// result leaves the doubt as it was: the connection's id was not known,
	// the right is missing, or the server could not be asked.
	Fence(ctx context.Context, call *Call) error
}

// Leader is implemented by transports that can do the I/O of a call on the goroutine of its
// caller, while no other call is under way. That saves the switches between goroutines,
// which take longer than all else that a client does for a call. It is called Leader after
// the pattern leader/followers: callers take turns in reading.
type Leader interface {
	// Leads reports whether calls of outermost may be given to Lead: whether outermost is
	// this transport itself. A transport that wraps another one by embedding it has the
	// other one's Lead, too, which knows nothing of the wrapper's Start; but Leads then
	// returns false, since outermost is the wrapper, and calls are given to its Start. A
	// wrapper that wants the I/O on its callers' goroutines has a Leads and a Lead of its own.
	Leads(outermost Transport) bool

	// Lead is Start for a caller that waits for the call and does nothing else meanwhile:
	// it may write the call and wait for the reply on the caller's goroutine. It returns
	// when done has run, when ctx ends, or after Interrupt, and earlier whenever that is
	// better for other calls: then done runs later, as with Start, whether or not the
	// caller still waits. It does not wait while others use the connection, or there is
	// none. It tells caller, which must not be nil, when the call was started.
	Lead(ctx context.Context, call *Call, done Done, caller Caller)

	// Interrupt makes the Lead of call, if there is one that waits, return at once. The
	// call goes on. It does not block, and may be called from any goroutine.
	Interrupt(call *Call)
}

// Caller is the caller of a call given to [Leader.Lead]. Its methods run on the goroutine
// that called Lead.
type Caller interface {
	// Started is called once, before the reply is waited for: calls started after it
	// go to the server after this one, when they go to the same server.
	Started()
	// Waits reports whether the caller still wants to wait; after false, Lead returns
	// at once. What makes it false is followed by Interrupt.
	Waits() bool
}

// HashSlot returns the hash slot, 0 to 16383, of a key or shard channel in a Redis Cluster:
// the CRC16 of its hash tag, or of the whole key where it has none. It is for [Slotter].
func HashSlot(key string) int { return limits.HashSlot(key) }

// Slotter is implemented by transports to a cluster.
type Slotter interface {
	// Slot returns the hash slot of key. Calls that span locks, such as batched
	// renewals, are grouped by it.
	Slot(key string) int
}

// Reconnecter is implemented by transports that can tell that connections were
// replaced.
type Reconnecter interface {
	// Reconnected returns a channel that is closed at the next successful
	// reconnect of a command connection. Ask again for the one after.
	Reconnected() <-chan struct{}
}

// Counter is implemented by transports that can tell how many listen.
type Counter interface {
	// Listeners returns how many connections listen to each of channels: one
	// number a channel, in their order, 0 for no subscriber. It adds up the
	// connections that the publish command reaches on every node that may have
	// subscribers, and waits no longer than ctx says. An error says that this
	// could not be found out on all of them, and why: it is one of the
	// package's error contract, or says what is wrong with the nodes. Then
	// there are no numbers, for a zero would say that a waiter is gone which
	// may be subscribed elsewhere. Without channels nothing is asked.
	Listeners(ctx context.Context, channels ...string) ([]int64, error)
}

// Replicated receives the outcome of a call that replicas were waited for: the reply,
// how many replicas are known to have what the call wrote, or an error of the package's
// error contract. As [Done] it must return at once.
type Replicated func(reply any, replicas int64, err error)

// Replicator is implemented by transports that can wait for replicas.
type Replicator interface {
	// Replicate is Start for a call that writes: done runs when so many replicas have
	// what it wrote, or when timeout is over, and gets how many have it. A replica
	// counts only when it has acknowledged that write, so the master is asked with
	// WAIT behind the call and on the same connection, and no other call waits for
	// that. The call may be sent again when its reply is lost, on another connection,
	// so it must be one that may run more than once. An error also says that it is not
	// known how many replicas have what the call wrote, if it ran.
	Replicate(call *Call, replicas int, timeout time.Duration, done Replicated)
}

// Sharding says how messages are published in a cluster: with SPUBLISH, to the nodes
// of one shard, or with PUBLISH, to all nodes. A message that is published one way
// does not wake subscribers of the other way only, so it has to be the same in the
// whole fleet: Redisson calls it shardedSubscriptionMode. Outside of a cluster it
// has no effect.
type Sharding uint8

const (
	// ShardingAuto uses SPUBLISH where the server can count listeners of shards:
	// Redis 7 and later, Valkey. It is Redisson's default.
	ShardingAuto Sharding = iota
	// ShardingOn uses SPUBLISH without asking.
	ShardingOn
	// ShardingOff uses PUBLISH.
	ShardingOff
)

// PublishCommand decides for a cluster, as Redisson does when it starts. With
// ShardingAuto it calls ask, which sends PUBSUB SHARDNUMSUB 0 to any one node: any
// error that the server sent decides for PUBLISH, whether it does not know the
// command or does not permit it. Any other error decides nothing and is returned.
func (s Sharding) PublishCommand(ask func() error) (string, error) {
	switch s {
	case ShardingOn:
		return "SPUBLISH", nil
	case ShardingOff:
		return "PUBLISH", nil
	}
	err := ask()
	var refusal *ServerError
	switch {
	case err == nil:
		return "SPUBLISH", nil
	case errors.As(err, &refusal):
		return "PUBLISH", nil
	}
	return "", fmt.Errorf("redlatch: cannot find out whether to publish with PUBLISH or SPUBLISH: %w", err)
}

// String returns Redisson's word for it: AUTO, ON or OFF.
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
