package redlatch

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

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

// Client is a client for a Redis or Valkey deployment. Its locks share two connections, or three per
// master in a cluster. A Client is safe for concurrent use, and a process needs only one per
// deployment.
type Client struct {
	engine *engine.Engine
}

// Open connects to the Redis or Valkey server at url and waits for its reply. url is one of
//
//	redis://[[user]:password@]host[:port][/db]
//	rediss://[[user]:password@]host[:port][/db]     (TLS)
//	unix://[[user]:password@]/path/to/socket[?db=n]
//	redis-cluster://[[user]:password@]host[:port][,host[:port]...][?sharded_pubsub=auto]
//	redis-sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/db]
//
// where rediss selects TLS and valkey may replace redis. Percent-encode special characters in the
// user and the password. The Sentinels' credentials are ?sentinel_user=u&sentinel_password=p.
// sharded_pubsub is auto, on or off; see [WithShardedPubSub].
//
// ctx bounds only the connection attempt. The error wraps [ErrNotSent] if the server cannot be
// reached. Open sends PING and, as needed, AUTH, SELECT, CLIENT SETNAME and CLIENT ID; in a
// cluster, CLUSTER SLOTS and PUBSUB SHARDNUMSUB; and with Sentinels, the commands of [NewSentinel]
// and [AskSentinels]. The modules adapter/goredis and adapter/rueidis use an existing client's
// settings.
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

// New returns a client for one server. It does no I/O: the client connects on first use with dial,
// such as the DialContext of a *redis.Pool, and calls return [ErrNotSent] if dial fails. dial must
// authenticate and select the database. Read timeouts apply only while dialing. [NewConn] makes
// connections that limit the size of replies, like those made by [Open].
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
	id, err := uuid.NewV7()
	if err != nil {
		return set, fmt.Errorf("redlatch: generate client ID: %w", err)
	}
	set.ClientID = id
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

// ID returns the version 7 UUID at the start of each of the client's owners. In Redisson, getId returns
// it.
func (c *Client) ID() uuid.UUID { return c.engine.ClientID }

// Close closes the client. Waiting calls return [ErrClosed], which is also the cause of the holds'
// contexts. Close does not release locks: they expire with their leases. It waits for uncertain
// calls for up to one command timeout. It is safe for concurrent use; later calls return the first
// result.
func (c *Client) Close() error { return c.engine.Close() }

// Shutdown closes the client gracefully. New and waiting calls return [ErrClosed] immediately, while
// holds are still renewed. When the last hold is unlocked or ctx ends, Shutdown closes the client
// and returns the result of [Client.Close]. If holds remain, the error reports their number and
// wraps ctx's error, or ErrClosed if Close was called. Shutdown does not wait for holds that have
// reached the limit of WithMaxHold. While Shutdown waits, holds can be handed over but not
// re-entered.
func (c *Client) Shutdown(ctx context.Context) error { return c.engine.Shutdown(ctx) }

// Stats contains client statistics. The counts are exact but not read atomically.
type Stats struct {
	// Held is the number of holds, including re-entries.
	Held int
	// OldestHold is the time since the oldest hold's acquisition was sent, or 0 if there are no
	// holds.
	OldestHold time.Duration
	// Waiting is the number of calls that are waiting for a lock, permits, a latch or the end of an
	// inner hold.
	Waiting int
	// InFlight is the number of calls to Redis, except renewals, whose callers are waiting for a
	// reply.
	InFlight int
	// Subscriptions is the number of waiters' subscriptions, including idle ones kept for later
	// waiters.
	Subscriptions int
	// InDoubt is the number of calls whose outcome the client is still resolving.
	InDoubt int
}

// Stats returns client statistics. It sends nothing, takes less than a microsecond, and may be
// called from an observer or after Close.
func (c *Client) Stats() Stats { return Stats(c.engine.Stats()) }

// KindStats contains statistics for the locks of one kind and group.
type KindStats struct {
	// Kind is the kind of the locks, such as "plain" or "fair".
	Kind string
	// Group is the group that the function passed to StatsBy returns for their names.
	Group string
	// Held, OldestHold and Waiting are as in Stats.
	Held       int
	OldestHold time.Duration
	Waiting    int
}

// StatsBy returns statistics, in no particular order, for each kind and group of locks with holds
// or waiters. group maps names of locks to groups and must be fast; it may be nil. StatsBy sends
// nothing and takes a few milliseconds for 10,000 holds. It may be called from an observer.
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

// NoTTL is the TTL of a key that never expires. It is negative.
const NoTTL time.Duration = reply.NoTTL
