package redlatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

func init() {
	engine.EngineOf = func(client any) *engine.Engine {
		c, ok := client.(*Client)
		if !ok || c == nil {
			panic("redlatch: a nil Client")
		}
		return c.engine
	}
}

// Client is a connection to Redis, an identity, and a lifetime. Locks are made
// from it with rlock.New, rfairlock.New and rfencedlock.New and share its two
// connections, however many they are; in a cluster, its three to each master that is
// used. Counting subscribers opens one connection to each replica, too. A Client is safe
// for concurrent use; a process needs one for each Redis.
type Client struct {
	engine *engine.Engine
}

// Open connects to the Redis or Valkey server at url and checks that it answers
// before it returns. The forms of url are
//
//	redis://[[user]:password@]host[:port][/db]
//	rediss://[[user]:password@]host[:port][/db]     (TLS)
//	unix://[[user]:password@]/path/to/socket[?db=n]
//
// and for a cluster, of which some nodes are named, and for a master that Sentinels
// name, with rediss for TLS,
//
//	redis-cluster://[[user]:password@]host[:port][,host[:port]...][?sharded_pubsub=auto]
//	redis-sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/db]
//
// In each scheme valkey may replace redis, as in valkeys://host. Special characters in the
// user and the password are percent-encoded: / is %2F.
//
// User and password are those of the servers. Those of the Sentinels are the options
// ?sentinel_user=u&sentinel_password=p; TLS is spoken with both. How messages are
// published in a cluster is auto, on or off, as [transport.Sharding] has it, and must be
// the same in the whole fleet. For a go-redis or rueidis client that you have there are
// the modules adapter/goredis and adapter/rueidis; for another client, [NewWithTransport].
//
// Other options are refused. ctx bounds the connecting alone. An error wraps ErrNotSent
// when the server could not be reached; with [WithLazyConnect] Open does not try. It
// sends PING, and AUTH, SELECT, CLIENT SETNAME and CLIENT ID where they apply; CLUSTER
// SLOTS and PUBSUB SHARDNUMSUB to nodes of a cluster, SENTINEL MASTER,
// GET-MASTER-ADDR-BY-NAME and SENTINELS to Sentinels, and SUBSCRIBE __sentinel__:hello to
// their master.
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
		_ = t.Close() // nothing was done with it
		return nil, err
	}
	return newClient(t, &set), nil
}

// New returns a client that makes its connections with dial, which may be the
// DialContext of a *redis.Pool. It does no I/O: connections are made on first use, and a
// dial that does not work shows as ErrNotSent then. Connections must come ready to use, authenticated and with their database
// selected; a read timeout they were dialled with applies while dialling only. What
// a server may announce is bounded on connections that Open makes; on these, if dial uses
// [LimitReplies]. For a cluster there is [NewCluster], for a master that Sentinels name
// [NewSentinel].
// On a master that has replicas subscribers cannot be counted, unless
// [WithReplicaDialer] says how to reach them.
func New(dial func(ctx context.Context) (redis.Conn, error), opts ...Option) (*Client, error) {
	if dial == nil {
		return nil, errors.New("redlatch: New needs a dial function")
	}
	set, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return newClient(set.single(dial), &set), nil
}

// NewWithTransport returns a client over a transport of the caller's, which the
// client closes when it is closed. It does no I/O.
func NewWithTransport(t transport.Transport, opts ...Option) (*Client, error) {
	if t == nil {
		return nil, errors.New("redlatch: NewWithTransport needs a transport")
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

// mayUse says why a transport cannot do what the settings ask for.
func (s *settings) mayUse(t transport.Transport) error {
	if s.replicas > 0 {
		if err := engine.NoReplicator(t); err != nil {
			return fmt.Errorf("redlatch: %w", err)
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
	if set.clientID == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return set, fmt.Errorf("redlatch: no random client id: %w", err)
		}
		set.clientID = id
	}
	set.logger = brief(set.logger)
	return set, set.check()
}

func newClient(t transport.Transport, set *settings) *Client {
	c := &Client{}
	c.engine = engine.New(engine.Config{
		Transport: t,
		ClientID:  set.clientID,
		Lease:     set.watchdog,
		FairWait:  set.fairWait,
		Command:   set.command,
		PollCap:   set.pollCap,
		Margin:    set.margin,
		Mapper:    set.mapper,
		Logger:    set.logger,

		MaxWaiters: int64(set.maxWaiters),
		Grace:      set.grace,
		Hooks:      c.hooks(set),
		Losses:     losses,
		KindOf:     luasrc.FillKindOf,
		ServerTime: set.serverTime,
		Label:      set.label,
		Replicas:   set.replicas,
		SyncWait:   set.syncWait,
	})
	set.tellOf(c, "Opened", set.observer.Opened)
	return c
}

// ID returns the UUID that the client's owners begin with.
func (c *Client) ID() uuid.UUID { return c.engine.ClientID }

// Close ends the client: calls that wait return ErrClosed, and the contexts of
// holds end with it. Locks that are held are not released, because the work
// under them may go on; they free themselves when their leases run out. Unlock
// first what should be free at once. Close deletes the client's label, waits up to
// one command timeout for calls whose outcome is open, then closes the connections.
// It is safe for concurrent use, and later calls return the first result.
func (c *Client) Close() error { return c.engine.Close() }

// Shutdown ends the client in peace: new calls and those that wait return
// ErrClosed at once, holds go on, renewed as before, and when the last was
// unlocked, or ctx ends, it closes the client as [Client.Close] does. When
// holds were left the error says how many, with ctx's error, or ErrClosed when a
// Close did not wait for them; otherwise it is the result of Close. A hold that has
// reached the time of WithMaxHold is not waited for. HandOver works meanwhile,
// re-entry does not. It is safe for concurrent use.
func (c *Client) Shutdown(ctx context.Context) error { return c.engine.Shutdown(ctx) }

// ClockOffset asks the server for its time and returns how far its clock is ahead
// of this machine's, which is negative when it is behind, give or take half of a
// round trip. More than a second apart, waiters of fair locks may lose their
// places: set the clocks right, or see [WithServerTime]. The client compares by
// itself, once a minute while fair locks are used, and logs a warning. It sends
// TIME.
func (c *Client) ClockOffset(ctx context.Context) (time.Duration, error) {
	engine.NeedContext(ctx)
	if err := c.engine.Enter(); err != nil {
		return 0, err
	}
	defer c.engine.Leave()
	ahead, err := c.engine.Clock.Compare(ctx)
	if err != nil {
		return 0, fmt.Errorf("redlatch: the server's clock cannot be read: %w", err)
	}
	return ahead, nil
}

// Stats are counts of one client at one moment, as sql.DBStats are of a pool. Each count is
// right by itself; they are not read at once.
type Stats struct {
	// Held is how many holds there are, re-entries included.
	Held int
	// OldestHold is how long the oldest of them has lasted, from the moment its acquisition
	// was sent; 0 without holds.
	OldestHold time.Duration
	// Waiting is how many calls wait: for a lock or permits, for a latch, or for an inner hold
	// to be given up.
	Waiting int
	// InFlight is how many calls to Redis there are whose reply a caller waits for. Renewals
	// are not counted.
	InFlight int
	// Subscriptions is how many subscriptions waiters have, or keep for the next waiter.
	// Those to one channel count each.
	Subscriptions int
	// InDoubt is how many calls there are whose outcome is not known, and that the client
	// still resolves: after lost replies, and after callers that left before the reply.
	InDoubt int
}

// Stats returns counts of this moment. It asks nothing of Redis, and takes well below a
// microsecond, however many holds and callers there are. It may be called at any time, also by
// an observer, and after Close.
func (c *Client) Stats() Stats {
	return Stats(c.engine.Stats())
}

// KindStats are the counts of the locks of one kind and group.
type KindStats struct {
	// Kind is the kind of the locks, such as "plain" or "fair".
	Kind string
	// Group is what the function that was given to StatsBy made of their names.
	Group string
	// Held, OldestHold and Waiting are as in Stats.
	Held       int
	OldestHold time.Duration
	Waiting    int
}

// StatsBy returns counts for each kind of lock of which there are holds or callers that wait,
// in no order. Group, if not nil, makes groups of the locks' names: it is called for each hold
// and each caller that waits, and must be quick. It asks nothing of Redis; 10,000 holds take a
// few milliseconds. It may be called at any time, also by an observer.
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
	for _, h := range c.engine.Holds() {
		s := of(h.Name, h.Kind)
		s.Held++
		s.OldestHold = max(s.OldestHold, now.Sub(h.Since))
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

// Owner identifies a holder of a lock: a client, by its UUID, and a number that the client
// gave to one acquisition (in Redisson: a thread id). It is an immutable value; the zero
// Owner stands for none. See [codec.Owner] for its methods.
type Owner = codec.Owner

// NewOwner returns the owner with number n of the client with this id. Any n is allowed, as
// it is in Redisson. It is for rlock.WithOwner.
func NewOwner(id uuid.UUID, n int64) Owner { return codec.NewOwner(id, n) }

// ParseOwner reads the text of an owner, such as "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57".
// Other spellings than that of Owner.String give [ErrInvalid].
func ParseOwner(text string) (Owner, error) { return codec.ParseOwner(text) }

// NoTTL is the time left of a key that never expires. It is negative.
const NoTTL = reply.NoTTL
