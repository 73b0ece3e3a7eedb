package redlatch

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

func init() {
	engine.EngineOf = func(client any) *engine.Engine {
		c, ok := client.(*Client)
		if !ok || c == nil {
			panic("redlatch: nil Client")
		}
		return c.engine
	}
}

// Client is a connection to Redis, an identity and a lifetime. All locks made from it share its two
// connections; in a cluster, three to each master in use. It is safe for concurrent use, and a
// process needs one for each Redis.
type Client struct {
	engine *engine.Engine
}

// Open connects to the Redis or Valkey server at url and waits for its answer. url is one of
//
//	redis://[[user]:password@]host[:port][/db]
//	rediss://[[user]:password@]host[:port][/db]     (TLS)
//	unix://[[user]:password@]/path/to/socket[?db=n]
//	redis-cluster://[[user]:password@]host[:port][,host[:port]...][?sharded_pubsub=auto]
//	redis-sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/db]
//
// with rediss for TLS; valkey may replace redis. Percent-encode special characters in the user and
// the password. The Sentinels' own are ?sentinel_user=u&sentinel_password=p. For sharded_pubsub,
// which is auto, on or off, see [WithShardedPubSub].
//
// ctx bounds only the connecting. The error wraps [ErrNotSent] if the server could not be reached.
// Open sends PING, and AUTH, SELECT, CLIENT SETNAME and CLIENT ID as needed; CLUSTER SLOTS and PUBSUB
// SHARDNUMSUB in a cluster; the commands of [NewSentinel] and [AskSentinels] with Sentinels. The
// modules adapter/goredis and adapter/rueidis use the settings of an existing client.
func Open(ctx context.Context, url string, opts ...Option) (*Client, error) {
	engine.NeedContext(ctx)
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	t, err := set.connect(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := set.mayUse(t); err != nil {
		_ = t.Close() // unused
		return nil, err
	}
	return newClient(t, &set), nil
}

// New returns a client of one server that connects with dial, such as the DialContext of a
// *redis.Pool, on first use; New does no I/O. dial must return connections that are ready to use,
// with authentication and database selection done. Their read timeout applies only to the dialing;
// [NewConn] makes connections with limits on replies, as Open does. Failures to dial are returned as
// [ErrNotSent] by the calls that need the connection.
func New(dial func(ctx context.Context) (redis.Conn, error), opts ...Option) (*Client, error) {
	if dial == nil {
		return nil, fmt.Errorf("%w: New needs a dial function", ErrInvalid)
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return newClient(set.single(dial), &set), nil
}

// NewWithTransport returns a client over t, which Close closes. It does no I/O.
func NewWithTransport(t transport.Transport, opts ...Option) (*Client, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: NewWithTransport needs a transport", ErrInvalid)
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if err := set.mayUse(t); err != nil {
		return nil, err
	}
	return newClient(t, &set), nil
}

// mayUse returns an error if t does not support the settings.
func (s *settings) mayUse(t transport.Transport) error {
	if s.Replicas > 0 {
		if err := engine.NoReplicator(t); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

func configure(opts []Option) (settings, error) {
	set := defaults()
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	if set.ClientID == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return set, fmt.Errorf("redlatch: generate client ID: %w", err)
		}
		set.ClientID = id
	}
	set.Logger = brief(set.Logger)
	return set, set.check()
}

func newClient(t transport.Transport, set *settings) *Client {
	c := &Client{}
	cfg := set.Config
	cfg.Transport, cfg.Hooks = t, c.hooks(set)
	c.engine = engine.New(cfg)
	set.tellOf(c, "Opened", set.observer.Opened)
	return c
}

// ID returns the UUID that the client's owners begin with.
func (c *Client) ID() uuid.UUID { return c.engine.ClientID }

// Close ends the client: waiting calls return [ErrClosed], and the contexts of holds end with it.
// It does not release locks, because work under them may continue; they expire with their leases.
// It waits up to one command timeout for calls with unknown outcome. It is safe for concurrent use,
// and later calls return the first result.
func (c *Client) Close() error { return c.engine.Close() }

// Shutdown ends the client gracefully. New and waiting calls return [ErrClosed] immediately, while
// holds continue to be renewed. When the last hold is unlocked or ctx ends, Shutdown closes the
// client as [Client.Close] does and returns its result. If holds remain, the error says how many,
// and wraps ctx's error, or ErrClosed if Close was called. It does not wait for holds that have
// reached the limit of WithMaxHold. While it waits, HandOver works and re-entry does not. It is
// safe for concurrent use.
func (c *Client) Shutdown(ctx context.Context) error { return c.engine.Shutdown(ctx) }

// Stats are counts of one client, as sql.DBStats are of a pool. Each count is exact, but they are
// not read atomically.
type Stats struct {
	// Held is the number of holds, including re-entries.
	Held int
	// OldestHold is the time since the acquisition of the oldest hold was sent; 0 without holds.
	OldestHold time.Duration
	// Waiting is the number of calls that wait for a lock, permits, a latch or the end of an inner
	// hold.
	Waiting int
	// InFlight is the number of calls to Redis whose reply a caller waits for, without renewals.
	InFlight int
	// Subscriptions is the number of subscriptions of waiters, including those kept for the next
	// waiter. Several to one channel all count.
	Subscriptions int
	// InDoubt is the number of calls with unknown outcome that the client still resolves, after lost
	// replies and after callers that left before the reply.
	InDoubt int
}

// Stats returns current counts. It sends nothing, takes well below a microsecond, and may be called
// at any time, also by an observer or after Close.
func (c *Client) Stats() Stats { return Stats(c.engine.Stats()) }

// KindStats are the counts of the locks of one kind and group.
type KindStats struct {
	// Kind is the kind of the locks, such as "plain" or "fair".
	Kind string
	// Group is the result of StatsBy's function for their names.
	Group string
	// Held, OldestHold and Waiting are as in Stats.
	Held       int
	OldestHold time.Duration
	Waiting    int
}

// StatsBy returns counts, in no order, for each kind of lock with holds or waiters. group, if not
// nil, maps their names to groups, and must be fast. StatsBy sends nothing and takes a few
// milliseconds for 10,000 holds. It may be called at any time, also by an observer.
func (c *Client) StatsBy(group func(name string) string) []KindStats {
	if group == nil {
		group = func(string) string { return "" }
	}
	type key struct{ kind, group string }
	counts := map[key]*KindStats{}
	of := func(name, kind string) *KindStats {
		k := key{kind, group(name)}
		if counts[k] == nil {
			counts[k] = &KindStats{Kind: k.kind, Group: k.group}
		}
		return counts[k]
	}
	now := time.Now()
	for _, l := range c.engine.Watchdog.All() {
		s := of(l.Holder.LockOf())
		s.Held++
		s.OldestHold = max(s.OldestHold, now.Sub(l.Began()))
	}
	for _, w := range c.engine.WaitingNow() {
		of(w.Name, w.Kind).Waiting++
	}
	all := make([]KindStats, 0, len(counts))
	for _, s := range counts {
		all = append(all, *s)
	}
	return all
}

// Owner identifies a holder of a lock: the UUID of a client, and a number that the client gave to
// one acquisition, a thread ID in Redisson. The zero Owner means none. See [codec.Owner] for its
// methods, [codec.NewOwner] and [codec.ParseOwner].
type Owner = codec.Owner

// NoTTL is the TTL of a key that never expires. It is negative.
const NoTTL = reply.NoTTL
