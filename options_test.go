package redlatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]redlatch.Option{
		"watchdog timeout of -1s is less than 1s":      redlatch.WithWatchdogTimeout(-time.Second),
		"watchdog timeout of 0s is less than 1s":       redlatch.WithWatchdogTimeout(0),
		"watchdog timeout of 999µs is less than 1s":    redlatch.WithWatchdogTimeout(999 * time.Microsecond),
		"watchdog timeout of 30ms is less than 1s":     redlatch.WithWatchdogTimeout(30 * time.Millisecond),
		"Redisson's default is 30*time.Second":         redlatch.WithWatchdogTimeout(time.Second - time.Millisecond),
		"invalid watchdog timeout 876000h0m1s":         redlatch.WithWatchdogTimeout(limits.Max + time.Second),
		"invalid fair wait timeout 0s":                 redlatch.WithFairWaitTimeout(0),
		"invalid command timeout 0s":                   redlatch.WithCommandTimeout(0),
		"invalid dial timeout -1ns":                    redlatch.WithDialTimeout(-1),
		"invalid poll cap 0s":                          redlatch.WithPollCap(0),
		"invalid loss margin -1ns":                     redlatch.WithLossMargin(-1),
		"invalid loss margin 5ns":                      redlatch.WithLossMargin(5),
		"invalid number of replicas -1":                redlatch.WithReplicaSync(-1, time.Second),
		"invalid replica timeout 0s":                   redlatch.WithReplicaSync(1, 0),
		"invalid replica timeout 999µs":                redlatch.WithReplicaSync(1, 999*time.Microsecond),
		"invalid replica timeout 876000h0m1s":          redlatch.WithReplicaSync(1, limits.Max+time.Second),
		"WithMaxWaiters(-1): must not be negative":     redlatch.WithMaxWaiters(-1),
		"WithDeadWaiterGrace(1s): must be at least 5s": redlatch.WithDeadWaiterGrace(time.Second),
		"WithShardedPubSub(99): unknown mode":          redlatch.WithShardedPubSub(99),
		"label of 201 bytes":                           redlatch.WithLabel(strings.Repeat("x", 201)),
		`the label "two\nlines" must be printable`:     redlatch.WithLabel("two\nlines"),
		"loss margin 30s must be less":                 redlatch.WithLossMargin(30 * time.Second),
		"invalid loss margin 2562047h47m16.854775807s": redlatch.WithLossMargin(1<<63 - 1),
	} {
		tr := &closing{}
		_, err := redlatch.NewWithTransport(tr, opt)
		require.ErrorContains(t, err, name)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		_, err = redlatch.New(func(context.Context) (redis.Conn, error) { panic("dialled") }, opt)
		require.ErrorContains(t, err, name)
		_, err = redlatch.Open(t.Context(), "redis://127.0.0.1:1", opt)
		require.ErrorContains(t, err, name)
	}
}

func TestNilAndZeroOptionsUseDefaults(t *testing.T) {
	t.Parallel()
	c, err := redlatch.NewWithTransport(&closing{}, nil,
		redlatch.WithLogger(nil), redlatch.WithNameMapper(nil),
		redlatch.WithTLSConfig(nil), redlatch.WithCredentials(nil), redlatch.WithClientName(""),
		redlatch.WithReplicaDialer(nil), redlatch.WithReplicaSync(0, 0))
	require.NoError(t, err)
	require.ErrorIs(t, c.Close(), errStuck)
}

// Such a transport would silently skip the wait.
func TestReplicaSyncRequiresWaitSupport(t *testing.T) {
	t.Parallel()
	_, err := redlatch.NewWithTransport(&closing{}, redlatch.WithReplicaSync(1, time.Second))
	require.EqualError(t, err, "redlatch: invalid argument: WithReplicaSync requires a transport.Replicator: *redlatch_test.closing is not one")
}

func TestClientNameAppearsInClientList(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := dialled(t, srv.URL(), redlatch.WithClientName("billing-7"))
	requireWorks(t, srv, c)
	list, err := redis.String(srv.Do(t, "CLIENT", "LIST"), nil)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(list, " name=billing-7 "), "both connections:\n%s", list)
}

// Redis rejects names with spaces.
func TestRejectedClientNameIsIgnored(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	requireWorks(t, srv, dialled(t, srv.URL(), redlatch.WithClientName("two words")))
}

func TestPrefixMapperRoundTrip(t *testing.T) {
	t.Parallel()
	mapper := redlatch.PrefixMapper("app:")
	require.Equal(t, "app:orders", mapper.Map("orders"))
	require.Equal(t, "orders", mapper.Unmap("app:orders"))
	require.Equal(t, "app:orders", mapper.Unmap(mapper.Map("app:orders")), "the prefix is removed once")
	require.Equal(t, "others:orders", mapper.Unmap("others:orders"))
	require.Equal(t, "redisson_lock__channel:{app:orders}", codec.LockChannel(mapper.Map("orders")))
	require.Equal(t, "orders", redlatch.PrefixMapper("").Map("orders"))
}

// lazily opens a client for a server that has not been started yet.
func lazily(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), url, append(opts, redlatch.WithLazyConnect())...)
	require.NoError(t, err)
	closedWith(t, client)
	return client
}

// A pod may start before its server.
func TestLazyClientWaitsForServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv.Addr())
	p.Refuse(true)
	_, err := redlatch.Open(t.Context(), p.URL())
	require.ErrorIs(t, err, redlatch.ErrNotSent, "without the option")

	lock := rlock.New(lazily(t, p.URL(), redlatch.WithCommandTimeout(10*time.Second)), redistest.Key(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = lock.Lock(ctx)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	came := make(chan error, 1)
	go func() {
		hold, err := lock.Lock(t.Context())
		if err == nil {
			err = hold.Unlock()
		}
		came <- err
	}()
	p.Refuse(false)
	require.NoError(t, <-came)
}

func TestLazyClientsDoNotConnect(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://127.0.0.1:1", "rediss://127.0.0.1:1", "unix:///nowhere",
		"redis-sentinel://127.0.0.1:1/mymaster",
		"redis-cluster://127.0.0.1:1?sharded_pubsub=on", "rediss-cluster://127.0.0.1:1?sharded_pubsub=off",
	} {
		client := lazily(t, url, redlatch.WithCommandTimeout(100*time.Millisecond))
		_, err := rlock.New(client, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotSent, url)
	}
}
