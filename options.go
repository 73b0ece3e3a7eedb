package redlatch

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// Option sets something about a [Client]. Each option's comment gives its unit,
// its default, and its counterpart in Redisson's configuration.
type Option func(*settings)

type settings struct {
	watchdog    time.Duration
	fairWait    time.Duration
	command     time.Duration
	dialTimeout time.Duration
	pollCap     time.Duration
	margin      time.Duration
	mapper      NameMapper
	clientID    uuid.UUID
	clientName  string
	tls         *tls.Config
	credentials func(ctx context.Context) (user, password string, err error)
	dialReplica func(ctx context.Context, addr string) (redis.Conn, error)
	sharding    transport.Sharding
	logger      *slog.Logger
	maxWaiters  int
	observer    Observer
	serverTime  bool
	grace       time.Duration
	label       string
	replicas    int
	syncWait    time.Duration
	lazy        bool
}

// leastGrace is what a live waiter may need to reconnect.
const leastGrace = 5 * time.Second

func defaults() settings {
	return settings{
		watchdog:    30 * time.Second,
		fairWait:    300 * time.Second,
		command:     3 * time.Second,
		dialTimeout: 5 * time.Second,
		pollCap:     10 * time.Second,
		grace:       liveness.DefaultGrace,
		logger:      slog.New(slog.DiscardHandler),
	}
}

// WithWatchdogTimeout sets the lease of locks that are renewed, which is every
// lock taken without a lease of its own. They are renewed every third of it.
// Default 30 s, at least 1 s, so that a lost packet does not cost the lock. It must be
// the same in the whole fleet: Redisson calls it lockWatchdogTimeout, in milliseconds.
func WithWatchdogTimeout(d time.Duration) Option { return func(s *settings) { s.watchdog = d } }

// WithFairWaitTimeout sets how long a waiter of a fair lock that gives no wait
// of its own keeps its place after those before it should have finished.
// Default 300 s, at least 1 ms. Redisson calls it fairLockWaitTimeout.
func WithFairWaitTimeout(d time.Duration) Option { return func(s *settings) { s.fairWait = d } }

// WithLazyConnect makes [Open] return without connecting, for a program that may start
// before its server: connections are made on first use. While the server is away Lock,
// TryLock and all other calls try again for one command timeout, or until their context
// ends, whichever comes first; then they end with ErrNotSent and the reason. That is as
// when a server goes away later, so a program that must have the lock calls again after
// ErrNotSent. A wrong password shows in the same way. An address that makes no sense is
// refused at once all the same.
//
// Default: Open fails when the server does not answer. A cluster needs sharded_pubsub=on or
// off in its address, or [WithShardedPubSub], since no node is asked. It has no effect on
// New, NewSentinel, NewCluster and NewWithTransport. Redisson calls it lazyInitialization.
func WithLazyConnect() Option { return func(s *settings) { s.lazy = true } }

// WithCommandTimeout bounds the wait for the reply to one command, from when it is
// called for: while 1,024 are in flight others wait in the client, and one that is not
// sent when half of its time is over ends with ErrNotSent. Default 3 s. Redisson calls
// it timeout.
func WithCommandTimeout(d time.Duration) Option { return func(s *settings) { s.command = d } }

// WithDialTimeout bounds the making of one connection, with TLS and
// authentication. Default 5 s. Redisson calls it connectTimeout. Dial functions
// that the caller brings are given a context that ends with it; on transports it
// has no effect.
func WithDialTimeout(d time.Duration) Option { return func(s *settings) { s.dialTimeout = d } }

// WithPollCap bounds how long a waiter sleeps without asking the server, in case
// a wake-up message is lost. Default 10 s. Redisson has no counterpart: its
// waiters sleep for the holder's whole lease.
func WithPollCap(d time.Duration) Option { return func(s *settings) { s.pollCap = d } }

// WithLossMargin sets how long before the end of its lease a lock that could not
// be renewed counts as lost. It covers the drift between this machine's clock
// and the server's, and the time that the holder takes to stop. Default: a
// tenth of the lease, at most 1 s; 0 means the default. At least 1 ms. Redisson has no
// counterpart.
func WithLossMargin(d time.Duration) Option { return func(s *settings) { s.margin = d } }

// NameMapper translates lock names between a program and Redis; it is the
// counterpart of Redisson's NameMapper. The lock's key and every key and channel
// derived from it come from the mapped name. Programs that share locks need
// mappers with equal results. Both methods must be pure and safe for concurrent
// use.
type NameMapper interface {
	// Map returns the name that Redis sees for the program's name.
	Map(name string) string

	// Unmap returns the program's name for a name that Redis sees, the reverse
	// of Map.
	Unmap(mapped string) string
}

// PrefixMapper returns a [NameMapper] that puts prefix in front of every name.
// Its Unmap takes the prefix off, and returns a name without it as it is. An
// empty prefix changes nothing.
func PrefixMapper(prefix string) NameMapper { return prefixMapper(prefix) }

type prefixMapper string

func (p prefixMapper) Map(name string) string { return string(p) + name }

func (p prefixMapper) Unmap(mapped string) string { return strings.TrimPrefix(mapped, string(p)) }

// WithNameMapper sets how lock names become keys, for a fleet whose Redisson
// clients are configured with a NameMapper. Default: the name is the key.
func WithNameMapper(m NameMapper) Option { return func(s *settings) { s.mapper = m } }

// WithClientID sets the UUID that the client's owners begin with. Default: a new
// one of version 7 for each client, which also tells when the client started.
// Two clients with one id take each other's locks for their own. Redisson's
// getId.
func WithClientID(id uuid.UUID) Option { return func(s *settings) { s.clientID = id } }

// WithClientName names the client's connections on the server, for CLIENT LIST.
// Default: none. A server that refuses it is tolerated. Redisson's clientName.
func WithClientName(name string) Option { return func(s *settings) { s.clientName = name } }

// WithLabel gives the client a label: a text of at most 200 bytes on one line, such as
// the service, host and process, which tells people who look at a lock which client
// holds it. Default: none, and it costs nothing. Redisson has no counterpart.
//
// The label is a key of its own on the server, redlatch:label:<client id>, outside of
// Redisson's keys and of any name mapper. It is written the first time that the client
// asks for a lock, again once a minute and after each reconnect, and deleted by Close;
// without Close it goes 10 minutes after it was last written. It needs the rights to
// SET and DEL that key; without them one line is logged and locks go on. Every user
// that may read the server can read it: put no secrets into it.
func WithLabel(text string) Option { return func(s *settings) { s.label = text } }

// WithTLSConfig sets the TLS configuration of rediss:// connections, and of those of
// clusters and Sentinels with rediss: other authorities, a certificate of the client's
// own. Default: the system's roots, the host that is dialled as server name. With an
// address of another scheme it is an error, and it has no effect on dial functions and
// transports that the caller brings.
func WithTLSConfig(c *tls.Config) Option { return func(s *settings) { s.tls = c } }

// WithCredentials sets where user and password come from, instead of the URL: f is called
// for every new connection, so it may return tokens that change; an empty user is the
// default user. Those of Sentinels come from the URL all the same.
func WithCredentials(f func(ctx context.Context) (user, password string, err error)) Option {
	return func(s *settings) { s.credentials = f }
}

// WithReplicaDialer sets how to connect to a replica of the master. Waiters may
// listen there, so they are counted there, too; replicas are used for nothing else.
// addr is the host:port that the master's ROLE gives; the dialer may know a better one.
// Connections must come ready to use, as those for [New]. Default for Open: addr, with the
// user, the password and the TLS settings of the connection to the master; for NewSentinel:
// its own dial function; for New: none, and subscribers of a master with replicas cannot be
// counted. It has no effect on transports that the caller brings. Redisson has no
// counterpart.
func WithReplicaDialer(dial func(ctx context.Context, addr string) (redis.Conn, error)) Option {
	return func(s *settings) { s.dialReplica = dial }
}

// WithShardedPubSub sets how messages are published in a cluster: with SPUBLISH or with
// PUBLISH. It must be the same in the whole fleet, else waiters are not woken. Default:
// [transport.ShardingAuto], which asks a node. An address given to [Open] that says it
// itself counts for more. Elsewhere than in a cluster it has no effect. Redisson calls it
// shardedSubscriptionMode.
func WithShardedPubSub(s transport.Sharding) Option { return func(set *settings) { set.sharding = s } }

// WithLogger sets where the client logs what it cannot return: losses, failed
// renewals, outcomes settled in the background. Default: nowhere. The end of a lost
// hold does not wait for the handler, but the connection does when it logs that it was
// lost or made anew: a handler that takes as long as a lease costs holds then.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil {
			s.logger = l
		}
	}
}

// WithMaxWaiters bounds how many callers of the client may wait for locks at a
// time; one more gets ErrNotAcquired at once. Default 0: no bound. Redisson has
// no counterpart.
func WithMaxWaiters(n int) Option { return func(s *settings) { s.maxWaiters = n } }

// WithServerTime makes fair locks reckon with the server's time instead of this
// machine's: each waiter's process sets deadlines by its own clock, and one that
// is wrong removes other waiters too early, or keeps its dead ones too long. The
// server is asked for its time once a minute while fair locks are used. Default:
// this machine's clock, as in Redisson, where every machine uses its own.
func WithServerTime() Option { return func(s *settings) { s.serverTime = true } }

// WithDeadWaiterGrace sets for how long the channel of a fair lock's waiter may have no
// subscriber before the waiter counts as dead, is taken out of the queue and reported to
// the observer as [Evicted]. The value, 10 s by default, is for waiters of this library;
// those of Redisson, which take longer to reconnect and may be queued for 25 s before
// they listen, have three times that, and 30 s at least. At least 5 s, or 0: no waiter is
// ever taken out. It takes effect in this client only; Redisson has no counterpart: there the dead
// block the queue until their deadlines, minutes later. Where Redisson's timeout,
// retryAttempts or subscriptionTimeout are raised, raise this in proportion.
//
// A live waiter that is taken out, as when its host could not reach Redis for so
// long, queues anew at the end: it loses its place, never the lock. To count
// subscribers the server must permit PUBSUB, and ROLE where there are replicas;
// where it does not, one line is logged and no waiter is taken out.
func WithDeadWaiterGrace(d time.Duration) Option { return func(s *settings) { s.grace = d } }

// WithReplicaSync makes Lock and TryLock wait, once they have the lock, until at least so
// many replicas have it, too, for timeout at most: so a failover to one of those keeps
// it. When they have it not, the lock is given back, its waiters are woken, and the error
// is [ErrNotReplicated]. Default 0: no replica is waited for, and nothing is sent for it.
// It is for all kinds of locks. Redisson's checkLockSyncedSlaves and slavesSyncTimeout,
// which wait for all replicas and are content with one, in its modes with replicas.
//
// It makes failovers safer and not safe: one replica of several may have the lock, and
// another be promoted, so ask for all of them, or for as many as the failover needs.
// Re-entries, Resume and renewals do not wait: a replica that falls behind later on, by
// a whole lease, has lost the lock (min-replicas-to-write on the server answers that).
// On a master with fewer replicas no lock is ever acquired.
//
// It costs one more round trip, and that of the replicas, for each acquisition, on a
// connection of its own, where all that wait at a time share one WAIT; a caller waits up
// to twice timeout when others were before it. The time is the hold's: its lease counts
// from the acquisition, and WithWait and the context end it. It sends EVALSHA and WAIT;
// the user needs the right to WAIT. timeout is at least 1 ms. The transport of
// [NewWithTransport] must be a transport.Replicator.
func WithReplicaSync(replicas int, timeout time.Duration) Option {
	return func(s *settings) { s.replicas, s.syncWait = replicas, timeout }
}

// check reports the first setting that makes no sense.
func (s *settings) check() error {
	if err := limits.Renewed(s.watchdog); err != nil {
		return err
	}
	for _, d := range []struct {
		what  string
		value time.Duration
		least time.Duration
	}{
		{"watchdog timeout", s.watchdog, limits.LeastRenewed},
		{"fair wait timeout", s.fairWait, time.Millisecond},
		{"command timeout", s.command, time.Millisecond},
		{"dial timeout", s.dialTimeout, time.Millisecond},
		{"poll cap", s.pollCap, time.Millisecond},
		{"loss margin", s.margin, 0},
		{"dead waiters' grace", s.grace, 0},
	} {
		if d.value < d.least || d.value > limits.Max {
			return fmt.Errorf("%w: %s of %v is outside %v … %v", ErrInvalid, d.what, d.value, d.least, limits.Max)
		}
	}
	if s.margin > 0 && s.margin < time.Millisecond {
		return fmt.Errorf("%w: loss margin of %v is neither 0 nor at least %v", ErrInvalid, s.margin, time.Millisecond)
	}
	if s.grace > 0 && s.grace < leastGrace {
		return fmt.Errorf("%w: WithDeadWaiterGrace(%v): minimum is %v", ErrInvalid, s.grace, leastGrace)
	}
	if err := label.Check(s.label); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if s.maxWaiters < 0 {
		return fmt.Errorf("%w: WithMaxWaiters(%d): must not be negative", ErrInvalid, s.maxWaiters)
	}
	if s.sharding > transport.ShardingOff {
		return fmt.Errorf("%w: WithShardedPubSub(%d): there is no such mode", ErrInvalid, s.sharding)
	}
	if s.replicas < 0 {
		return fmt.Errorf("%w: a sync with %d replicas", ErrInvalid, s.replicas)
	}
	if s.replicas > 0 && (s.syncWait < time.Millisecond || s.syncWait > limits.Max) {
		return fmt.Errorf("%w: a sync with replicas within %v, which is outside %v … %v",
			ErrInvalid, s.syncWait, time.Millisecond, limits.Max)
	}
	if s.margin >= s.watchdog {
		return fmt.Errorf("%w: a loss margin of %v leaves nothing of the watchdog timeout of %v",
			ErrInvalid, s.margin, s.watchdog)
	}
	return nil
}
