package redlatch

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Option configures a [Client].
type Option func(*settings)

type settings struct {
	engine.Config

	dialTimeout time.Duration
	clientName  string
	tls         *tls.Config
	credentials func(ctx context.Context) (user, password string, err error)
	dialReplica func(ctx context.Context, addr string) (redis.Conn, error)
	sharding    transport.Sharding
	observer    Observer
	lazy        bool
}

// leastGrace is the longest time that a live waiter needs to reconnect.
const leastGrace = 5 * time.Second

func defaults() settings {
	return settings{
		Config: engine.Config{
			Lease:    30 * time.Second,
			FairWait: 300 * time.Second,
			Command:  3 * time.Second,
			PollCap:  10 * time.Second,
			Grace:    liveness.DefaultGrace,
			Logger:   slog.New(slog.DiscardHandler),
			Losses:   losses,
			KindOf:   luasrc.FillKindOf,

			Label:         engine.DefaultLabel(os.Args),
			LabelOptional: true,
		},
		dialTimeout: 5 * time.Second,
	}
}

// WithWatchdogTimeout sets the lease of locks without WithLease, which is renewed every d/3. It
// must be the same in the whole fleet. The default is 30 s, and the minimum is 1 s. Redisson calls
// it lockWatchdogTimeout, in milliseconds.
func WithWatchdogTimeout(d time.Duration) Option { return func(s *settings) { s.Lease = d } }

// WithFairWaitTimeout sets how long a waiter of a fair lock without WithWait keeps its place after
// the deadlines of the waiters before it. The default is 300 s, and the minimum is 1 ms. Redisson
// calls it fairLockWaitTimeout.
func WithFairWaitTimeout(d time.Duration) Option { return func(s *settings) { s.FairWait = d } }

// WithLazyConnect makes [Open] return without connecting. The client connects on first use; until
// it has connected, calls return [ErrNotSent], even if the password is wrong. Open still rejects an
// invalid address. A cluster needs sharded_pubsub=on or off, or [WithShardedPubSub]. By default,
// Open fails if the server does not reply. Redisson calls it lazyInitialization.
func WithLazyConnect() Option { return func(s *settings) { s.lazy = true } }

// WithCommandTimeout bounds the time from the call that issues a command to the command's reply. At
// most 1,024 commands are in flight; a command that is not sent within half of d fails with
// [ErrNotSent]. The default is 3 s. Redisson calls it timeout.
func WithCommandTimeout(d time.Duration) Option { return func(s *settings) { s.Command = d } }

// WithDialTimeout bounds the time to connect, including TLS and authentication, even if the
// caller's dial functions are used. It does not apply to transports. The default is 5 s. Redisson
// calls it connectTimeout.
func WithDialTimeout(d time.Duration) Option { return func(s *settings) { s.dialTimeout = d } }

// WithPollCap bounds the time between a waiter's attempts, in case a message is lost. The default
// is 10 s. Redisson has no such setting.
func WithPollCap(d time.Duration) Option { return func(s *settings) { s.PollCap = d } }

// WithLossMargin sets how long before the end of its lease a lock counts as lost if it could not be
// renewed. It covers clock drift and the time that the holder needs to stop. The minimum is 1 ms;
// 0, the default, means a tenth of the lease, but at most 1 s.
func WithLossMargin(d time.Duration) Option { return func(s *settings) { s.Margin = d } }

// NameMapper maps lock names to names in Redis, like Redisson's NameMapper. Programs that share locks
// must use equivalent mappers. Both methods must be pure and safe for concurrent use.
type NameMapper interface {
	// Map returns the name in Redis.
	Map(name string) string

	// Unmap is the inverse of Map.
	Unmap(mapped string) string
}

// PrefixMapper returns a [NameMapper] that prepends prefix to every name. If a name does not have the
// prefix, Unmap returns it unchanged.
func PrefixMapper(prefix string) NameMapper { return prefixMapper(prefix) }

type prefixMapper string

func (p prefixMapper) Map(name string) string { return string(p) + name }

func (p prefixMapper) Unmap(mapped string) string { return strings.TrimPrefix(mapped, string(p)) }

// WithNameMapper sets the mapper of lock names. By default, the name is the key. Redisson calls it
// nameMapper.
func WithNameMapper(m NameMapper) Option { return func(s *settings) { s.Mapper = m } }

// WithClientName names the client's connections in CLIENT LIST, if the server permits it. Redisson
// calls it clientName.
func WithClientName(name string) Option { return func(s *settings) { s.clientName = name } }

// WithLabel sets the label that shows operators which client holds a lock: one line of at most 200
// bytes. The default is the environment variable REDLATCH_LABEL or, if it is not set, the program, host
// and process ID, such as billing@host-3 pid 812. An empty label disables everything below.
//
// At the first acquisition, and then every minute, the client writes the label to the key
// redlatch:label:<client id>, which Close deletes and which otherwise expires after 10 minutes. Anyone
// who can read the server can read it. The client also announces long waits inside holds, so that
// redlatch status can report deadlocks. If a label set with WithLabel cannot be written, it logs
// a warning; the user needs permission to run SET and DEL on the key.
func WithLabel(text string) Option {
	return func(s *settings) { s.Label, s.LabelOptional = text, false }
}

// WithTLSConfig sets the TLS configuration for addresses with the scheme rediss; with other schemes
// it is an error. It does not apply to the caller's dial functions and transports. By default, the
// system's root certificates are used, and the server name is the dialed host.
func WithTLSConfig(c *tls.Config) Option { return func(s *settings) { s.tls = c } }

// WithCredentials replaces the user and password of the URL, except for Sentinels. f is called for
// every new connection, so it may return changing tokens. An empty user is the default user. It does
// not apply to the caller's dial functions and transports.
func WithCredentials(f func(ctx context.Context) (user, password string, err error)) Option {
	return func(s *settings) { s.credentials = f }
}

// WithReplicaDialer sets how to connect to a replica to count its subscribers. addr is the
// host:port that the master's ROLE reply contains, and dial returns connections as for [New]. By
// default, Open and NewSentinel connect in the same way as to the master. New has no default.
func WithReplicaDialer(dial func(ctx context.Context, addr string) (redis.Conn, error)) Option {
	return func(s *settings) { s.dialReplica = dial }
}

// WithShardedPubSub sets whether messages in a cluster are published with SPUBLISH or PUBLISH. It
// must be the same in the whole fleet; otherwise waiters are not woken. The address given to [Open]
// takes precedence. The default is [transport.ShardingAuto], which queries a node. Redisson calls
// it shardedSubscriptionMode.
func WithShardedPubSub(s transport.Sharding) Option { return func(set *settings) { set.sharding = s } }

// WithLogger sets the logger for events that no call returns, such as losses, failed renewals and
// outcomes resolved in the background. A slow handler delays the handling of lost connections; if
// it takes as long as a lease, holds are lost. By default, nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) {
		if l != nil {
			s.Logger = l
		}
	}
}

// WithMaxWaiters limits the number of callers that may be waiting for locks; further calls return
// ErrNotAcquired immediately. The default, 0, means no limit.
func WithMaxWaiters(n int) Option { return func(s *settings) { s.MaxWaiters = int64(n) } }

// WithServerTime makes fair locks use the server's clock, which is read once a minute. By default,
// they use this machine's clock, as in Redisson. If that clock is wrong, other waiters are removed
// too early, or dead ones are kept too long.
func WithServerTime() Option { return func(s *settings) { s.ServerTime = true } }

// WithDeadWaiterGrace sets how long the channel of a fair lock's waiter may have no subscriber
// before this client removes the waiter from the queue as dead and reports [Evicted]. The default
// is 10 s, and the minimum is 5 s; 0 means never. For Redisson's waiters, the grace is three times
// d, but at least 30 s; raise d if Redisson's timeout, retryAttempts or subscriptionTimeout are
// raised.
//
// A live waiter that is removed loses only its place, never the lock: it rejoins the queue at the end.
// Removal requires permission to run PUBSUB and, if there are replicas, ROLE.
func WithDeadWaiterGrace(d time.Duration) Option { return func(s *settings) { s.Grace = d } }

// WithReplicaSync makes Lock and TryLock of all kinds wait after each acquisition, for at most
// timeout, until the given number of replicas have the lock, so that a failover to one of them
// keeps it. Otherwise the lock is released and the error is [ErrNotReplicated]. The default, 0,
// means that they do not wait. timeout is at least 1 ms.
//
// This makes failovers safer, but not safe: re-entries, Resume and renewals do not wait. An
// acquisition takes one more round trip, which counts toward its lease, WithWait and context.
// Callers share one WAIT, so a caller may wait up to twice timeout. The user needs permission to
// run WAIT, and a transport must be a [transport.Replicator]. Redisson calls these settings
// checkLockSyncedSlaves and slavesSyncTimeout.
func WithReplicaSync(replicas int, timeout time.Duration) Option {
	return func(s *settings) { s.Replicas, s.SyncWait = replicas, timeout }
}

func (s *settings) check() error {
	if err := limits.Renewed(s.Lease); err != nil {
		return err
	}
	for _, d := range []struct {
		what  string
		value time.Duration
		least time.Duration
	}{
		{"watchdog timeout", s.Lease, limits.LeastRenewed},
		{"fair wait timeout", s.FairWait, time.Millisecond},
		{"command timeout", s.Command, time.Millisecond},
		{"dial timeout", s.dialTimeout, time.Millisecond},
		{"poll cap", s.PollCap, time.Millisecond},
		{"loss margin", s.Margin, 0},
		{"dead waiter grace", s.Grace, 0},
	} {
		if d.value < d.least || d.value > limits.Max {
			return fmt.Errorf("%w: invalid %s %v: must be from %v to 100 years", ErrInvalid, d.what, d.value, d.least)
		}
	}
	if s.Margin > 0 && s.Margin < time.Millisecond {
		return fmt.Errorf("%w: invalid loss margin %v: must be 0 or at least %v", ErrInvalid, s.Margin, time.Millisecond)
	}
	if s.Grace > 0 && s.Grace < leastGrace {
		return fmt.Errorf("%w: WithDeadWaiterGrace(%v): must be at least %v", ErrInvalid, s.Grace, leastGrace)
	}
	if err := engine.CheckLabel(s.Label); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if s.MaxWaiters < 0 {
		return fmt.Errorf("%w: WithMaxWaiters(%d): must not be negative", ErrInvalid, s.MaxWaiters)
	}
	if s.sharding > transport.ShardingOff {
		return fmt.Errorf("%w: WithShardedPubSub(%d): unknown mode", ErrInvalid, s.sharding)
	}
	if s.Replicas < 0 {
		return fmt.Errorf("%w: invalid number of replicas %d", ErrInvalid, s.Replicas)
	}
	if s.Replicas > 0 && (s.SyncWait < time.Millisecond || s.SyncWait > limits.Max) {
		return fmt.Errorf("%w: invalid replica timeout %v: must be from %v to 100 years",
			ErrInvalid, s.SyncWait, time.Millisecond)
	}
	if s.Margin >= s.Lease {
		return fmt.Errorf("%w: loss margin %v must be less than the watchdog timeout %v",
			ErrInvalid, s.Margin, s.Lease)
	}
	return nil
}
