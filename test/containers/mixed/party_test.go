package mixed

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredislib "github.com/redis/go-redis/v9"
	rueidislib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/goredis"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
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

// place is a cluster that parties meet in, every node of which is watched.
type place struct {
	title   string
	sharded bool // its servers know sharded pub/sub
	cluster *redistest.Cluster
	watches map[*redistest.Server]*oracle.Watch
	stalls  *redistest.Stalls
}

// startPlaces starts a cluster of each kind.
func startPlaces(t *testing.T) []*place {
	t.Helper()
	return []*place{
		watched(t, &place{title: "sharded pub/sub", sharded: true, cluster: redistest.StartCluster(t, 3, 0)}),
		watched(t, &place{title: "no sharded pub/sub", cluster: redistest.StartCluster(t, 3, 0, oldServers())}),
	}
}

// watched watches the nodes of a cluster that has no clients yet: a watch must have seen
// the scripts' texts.
func watched(t *testing.T, p *place) *place {
	t.Helper()
	p.watches, p.stalls = map[*redistest.Server]*oracle.Watch{}, redistest.WatchStalls(t)
	for _, s := range p.cluster.Nodes() {
		w, err := oracle.NewWatch(s.Dial(t), s.Dial(t))
		require.NoError(t, err)
		p.watches[s] = w
	}
	return p
}

// inTime requires that a wait took less than bound, unless the machine stalled since it began.
func (p *place) inTime(t *testing.T, began time.Time, took, bound time.Duration, wrong string) {
	t.Helper()
	if still := p.stalls.Longest(began, time.Now()); took >= bound && still > 0 {
		t.Logf("NOT JUDGED, as the machine stalled for %v: after %v: %s", still, took, wrong)
		return
	}
	require.Less(t, took, bound, wrong)
}

// oldServers are of Redis 6, where there is one, or else like it.
func oldServers() redistest.Option {
	if program := os.Getenv("REDLATCH_REDIS6"); program != "" {
		return redistest.WithRedis6(program)
	}
	return redistest.WithoutShardedPubSub()
}

// since returns what was sent about a name since the last time.
func (p *place) since(t *testing.T, name string) []monitor.Call {
	t.Helper()
	calls, err := p.watches[p.cluster.Owner(t, name)].Since(name)
	require.NoError(t, err)
	return calls
}

// parked returns when a waiter of a lock, the first of all that were asked about it
// since the last time, has nothing left to do but to sleep: its second attempt is the
// one after its subscription.
func (p *place) parked(t *testing.T, name string) {
	t.Helper()
	watch := p.watches[p.cluster.Owner(t, name)]
	for range 2 {
		_, err := watch.Until(name)
		require.NoError(t, err, "%s: no waiter", name)
	}
}

// modes are those that make sense here, in Redisson's words: ON needs servers that
// know sharded pub/sub, see place.refused.
func (p *place) modes() []transport.Sharding {
	if p.sharded {
		return []transport.Sharding{transport.ShardingAuto, transport.ShardingOn, transport.ShardingOff}
	}
	return []transport.Sharding{transport.ShardingAuto, transport.ShardingOff}
}

// parties makes a client of each library for each mode. With the same mode both must have
// decided alike.
func (p *place) parties(t *testing.T, java *peer.Peer) []party {
	t.Helper()
	all := []party{overRueidis(t, p.cluster, transport.ShardingAuto)}
	for _, mode := range p.modes() {
		ours, theirs := overGoRedis(t, p.cluster, mode), connect(t, java, p.cluster, mode.String(), nil)
		all = append(all, ours)
		if theirs.mode == "" && mode != transport.ShardingAuto {
			continue // one of those that do not know the setting is enough
		}
		p.find(t, theirs)
		require.Equal(t, theirs.says, theirs.listens, "%s hears itself", theirs.title())
		if theirs.mode != "" {
			require.Equal(t, theirs.says, ours.publishes(), "%s and %s", theirs.title(), ours.title())
		}
		all = append(all, theirs)
	}
	return all
}

// find finds out how a Redisson client listens, by the count of listeners while it waits
// for a lock whose owner is no client, and how it publishes, by the script that it frees
// that lock with.
func (p *place) find(t *testing.T, j *javaParty) {
	t.Helper()
	l := target{kind: locksuite.Kinds[0], name: redistest.Key(t)}
	p.cluster.Do(t, "HSET", l.name, "a peer:1", 1)
	p.cluster.Do(t, "PEXPIRE", l.name, 60000)
	p.since(t, l.name)
	came := j.wait(t, l)
	p.parked(t, l.name)
	channel := codec.LockChannel(l.name)
	switch {
	case p.listeners(t, "NUMSUB", channel) == 1:
		j.listens = "PUBLISH"
	case p.sharded && p.listeners(t, "SHARDNUMSUB", channel) == 1:
		j.listens = "SPUBLISH"
	default:
		require.FailNow(t, "it listens to nothing", j.title())
	}
	p.cluster.Do(t, "DEL", l.name)
	p.cluster.DoAt(t, l.name, j.listens, channel, "0")
	got := await(t, came, "a message of each kind")
	p.since(t, l.name)
	got.free(t)
	scripts := slices.DeleteFunc(p.since(t, l.name), func(c monitor.Call) bool { return c.Script == "" })
	require.NotEmpty(t, scripts, "%s has freed the lock", j.title())
	j.says = "PUBLISH" // before 3.22 the scripts have it in their text
	if slices.ContainsFunc(scripts[0].Argv, func(arg string) bool { return strings.EqualFold(arg, "SPUBLISH") }) {
		j.says = "SPUBLISH"
	}
}

// listeners counts the listeners of a channel, where its slot is.
func (p *place) listeners(t *testing.T, way, channel string) int {
	t.Helper()
	counts, err := redis.Values(p.cluster.DoAt(t, channel, "PUBSUB", way, channel), nil)
	require.NoError(t, err)
	require.Len(t, counts, 2)
	n, err := redis.Int(counts[1], nil)
	require.NoError(t, err)
	return n
}

// sleeper is a waiter that was not woken.
type sleeper struct {
	frees, waits         party
	kind                 string
	lease                time.Duration
	began, waited, freed time.Time // before the lock was taken, waited for, and freed
	free                 time.Time // when it was
	came                 <-chan taken
	place                *place
}

const (
	// sleeperLease is the lease of the locks whose waiters are not woken.
	sleeperLease = 3 * time.Second
	// wakeBound is how long after it began to wait a waiter that was woken has the lock at
	// the latest. The first that would look by itself is one of a fair lock in Redlatch,
	// after five seconds; a plain one does after ten, one in Redisson after thirty.
	wakeBound = 4800 * time.Millisecond
	// parks is for Redisson's waiting readers, and those that wait for permits: a message wakes
	// those that are parked already, and one that is about to sleeps for what its refusal said.
	parks = 100 * time.Millisecond
	// slack is how far the clocks of two processes' timers may be apart.
	slack = 50 * time.Millisecond
)

// String names the two.
func (s sleeper) String() string {
	return fmt.Sprintf("%s waits, %s frees the %s lock", s.waits.title(), s.frees.title(), s.kind)
}

// meet has one party free a lock that the other sleeps for, and returns when, and what
// comes of the other. Between runs before the lock is freed.
func (p *place) meet(t *testing.T, frees, waits party, l target, lease time.Duration, between ...func()) sleeper {
	t.Helper()
	s := sleeper{frees: frees, waits: waits, kind: l.what(), lease: lease, began: time.Now(), place: p}
	p.supply(t, l)
	free := frees.take(t, l, lease)
	p.since(t, l.name)
	s.waited = time.Now()
	s.came = waits.wait(t, l.waited())
	p.parked(t, l.name)
	if l.kind.Name == locksuite.Writer.Name || l.isPermit() && waits.library() == "Redisson" {
		<-time.After(parks)
	}
	for _, f := range between {
		f()
	}
	s.freed = free(t)
	s.free = time.Now()
	return s
}

// slept holds that the waiter slept until the lease was over that it knew of, and no
// longer, and returns how long after the lock was freed it had it.
func (s sleeper) slept(t *testing.T) time.Duration {
	t.Helper()
	got := await(t, s.came, s.String())
	got.free(t)
	over := got.at.Sub(s.began.Add(s.lease))
	require.Greater(t, over, -slack, "woken: %s", s)
	s.place.inTime(t, s.began, over, wakeBound, "asleep after the lease: "+s.String())
	return got.at.Sub(s.freed)
}

// woken checks that the waiter received the message, and returns how long that took.
func (s sleeper) woken(t *testing.T) time.Duration {
	t.Helper()
	got := await(t, s.came, s.String())
	got.free(t)
	s.place.inTime(t, s.waited, got.at.Sub(s.waited), wakeBound, "a wake-up was lost: "+s.String())
	return got.at.Sub(s.freed)
}
