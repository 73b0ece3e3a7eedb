package mixed

import (
	"fmt"
	"testing"
	"time"

	goredislib "github.com/redis/go-redis/v9"
	rueidislib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/goredis"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// target is a lock that parties meet on.
type target struct {
	kind locksuite.Kind
	name string
	// waits is the kind of a waiter that has another role than the holder, "" for the same.
	waits locksuite.Kind
	// thread tells apart the threads of one Java client, each of which does one thing
	// at a time.
	thread string
}

// waited is the target of those that wait.
func (l target) waited() target {
	if l.waits.Name != "" {
		l.kind = l.waits
	}
	return l
}

// what names the kinds.
func (l target) what() string {
	if l.waits.Name != "" {
		return l.kind.Name + ", and a waiter's " + l.waits.Name
	}
	return l.kind.Name
}

// party is a client of either language.
type party interface {
	// title is the library, and its setting of sharded pub/sub.
	title() string
	// library is "Redlatch" or "Redisson".
	library() string
	// publishes returns the command that tells of a free lock.
	publishes() string
	// hears reports whether its waiters receive what is published with a command.
	hears(command string) bool
	// take takes a lock that is free, for a lease, or with 0 until it is freed.
	take(t *testing.T, l target, lease time.Duration) held
	// wait begins to wait for a lock.
	wait(t *testing.T, l target) <-chan taken
}

// held frees a lock and returns when it began to.
type held func(t *testing.T) time.Time

// taken is what a waiter ends with.
type taken struct {
	at   time.Time
	free held
	err  error
}

// await demands that a wait ends well.
func await(t *testing.T, came <-chan taken, what string) taken {
	t.Helper()
	select {
	case got := <-came:
		require.NoError(t, got.err, what)
		return got
	case <-time.After(2 * atMost):
		require.FailNow(t, "a waiter does not return", what)
		return taken{}
	}
}

// goParty is a Redlatch client.
type goParty struct {
	name      string
	transport transport.Transport
	client    *redlatch.Client
}

// overGoRedis makes a client of the cluster that ends with the test.
func overGoRedis(t *testing.T, c *redistest.Cluster, mode transport.Sharding, opts ...redlatch.Option) *goParty {
	t.Helper()
	lib := goredislib.NewClusterClient(&goredislib.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { assert.NoError(t, lib.Close()) })
	client, err := goredis.New(t.Context(), lib, append(opts, redlatch.WithShardedPubSub(mode))...)
	require.NoError(t, err)
	return partyOf(t, fmt.Sprintf("Redlatch %v", mode), client)
}

// overRueidis is overGoRedis with the other adapter.
func overRueidis(t *testing.T, c *redistest.Cluster, mode transport.Sharding, opts ...redlatch.Option) *goParty {
	t.Helper()
	lib, err := rueidislib.NewClient(rueidislib.ClientOption{InitAddress: c.Addrs()})
	require.NoError(t, err)
	t.Cleanup(lib.Close)
	client, err := rueidis.New(t.Context(), lib, append(opts, redlatch.WithShardedPubSub(mode))...)
	require.NoError(t, err)
	return partyOf(t, fmt.Sprintf("Redlatch %v (rueidis)", mode), client)
}

// partyOf is a client that ends with the test.
func partyOf(t *testing.T, name string, client *redlatch.Client) *goParty {
	t.Helper()
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return &goParty{name: name, transport: engine.EngineOf(client).Transport, client: client}
}

func (g *goParty) title() string     { return g.name }
func (*goParty) library() string     { return "Redlatch" }
func (g *goParty) publishes() string { return g.transport.PublishCommand() }

// In a cluster Redlatch listens both ways.
func (*goParty) hears(string) bool { return true }

func (g *goParty) lock(l target) *rlock.Lock { return l.kind.New(g.client, l.name) }

func (g *goParty) take(t *testing.T, l target, lease time.Duration) held {
	t.Helper()
	var opts []rlock.Option
	if lease > 0 {
		opts = append(opts, rlock.WithLease(lease))
	}
	hold, err := g.lock(l).TryLock(t.Context(), opts...)
	require.NoError(t, err)
	return freeing(hold)
}

func freeing(hold *rlock.Hold) held {
	return func(t *testing.T) time.Time {
		t.Helper()
		began := time.Now()
		require.NoError(t, hold.Unlock())
		return began
	}
}

func (g *goParty) wait(t *testing.T, l target) <-chan taken {
	t.Helper()
	came := make(chan taken, 1)
	go func() {
		hold, err := g.lock(l).Lock(t.Context())
		came <- taken{at: time.Now(), free: freeing(hold), err: err}
	}()
	return came
}
