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

// target is a lock on which parties meet.
type target struct {
	kind locksuite.Kind
	name string
	// waits is the kind of lock of a waiter whose role differs from that of the holder. It is empty for the same role.
	waits locksuite.Kind
	// thread selects a thread of a Java client, which runs one command at a time.
	thread string
}

// waited returns the waiters' target.
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

// party is a client of either library.
type party interface {
	// title is the library and its setting of sharded pub/sub.
	title() string
	// library is "Redlatch" or "Redisson".
	library() string
	// publishes returns the command that announces a free lock.
	publishes() string
	// hears reports whether its waiters receive messages that are published with a command.
	hears(command string) bool
	// take acquires a free lock with a lease. If it is 0, the lock is held until it is released.
	take(t *testing.T, l target, lease time.Duration) held
	// wait starts to wait for a lock.
	wait(t *testing.T, l target) <-chan taken
}

// held releases a lock, and returns the time at which it started to do so.
type held func(t *testing.T) time.Time

// taken is the result of a wait.
type taken struct {
	at   time.Time
	free held
	err  error
}

// await requires that a wait succeeds.
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

type goParty struct {
	name      string
	transport transport.Transport
	client    *redlatch.Client
}

// overGoRedis creates a cluster client that is closed at the end of the test.
func overGoRedis(t *testing.T, c *redistest.Cluster, mode transport.Sharding, opts ...redlatch.Option) *goParty {
	t.Helper()
	lib := goredislib.NewClusterClient(&goredislib.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { assert.NoError(t, lib.Close()) })
	client, err := goredis.New(t.Context(), lib, append(opts, redlatch.WithShardedPubSub(mode))...)
	require.NoError(t, err)
	return partyOf(t, fmt.Sprintf("Redlatch %v", mode), client)
}

// overRueidis is like overGoRedis.
func overRueidis(t *testing.T, c *redistest.Cluster, mode transport.Sharding, opts ...redlatch.Option) *goParty {
	t.Helper()
	lib, err := rueidislib.NewClient(rueidislib.ClientOption{InitAddress: c.Addrs()})
	require.NoError(t, err)
	t.Cleanup(lib.Close)
	client, err := rueidis.New(t.Context(), lib, append(opts, redlatch.WithShardedPubSub(mode))...)
	require.NoError(t, err)
	return partyOf(t, fmt.Sprintf("Redlatch %v (rueidis)", mode), client)
}

// partyOf wraps a client that is closed at the end of the test.
func partyOf(t *testing.T, name string, client *redlatch.Client) *goParty {
	t.Helper()
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return &goParty{name: name, transport: engine.EngineOf(client).Transport, client: client}
}

func (g *goParty) title() string     { return g.name }
func (*goParty) library() string     { return "Redlatch" }
func (g *goParty) publishes() string { return g.transport.PublishCommand() }

// In a cluster, Redlatch subscribes in both ways, so it receives all messages.
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

// place is a cluster in which parties meet. All its nodes are watched.
type place struct {
	title   string
	sharded bool // whether its servers support sharded pub/sub
	cluster *redistest.Cluster
	watches map[*redistest.Server]*oracle.Watch
	stalls  *redistest.Stalls
}

// startPlaces starts one cluster of each kind.
func startPlaces(t *testing.T) []*place {
	t.Helper()
	return []*place{
		watched(t, &place{title: "sharded pub/sub", sharded: true, cluster: redistest.StartCluster(t, 3, 0)}),
		watched(t, &place{title: "no sharded pub/sub", cluster: redistest.StartCluster(t, 3, 0, oldServers())}),
	}
}

// watched watches the nodes of a cluster. The cluster must not have clients yet, because a watch must see the texts of
// all scripts.
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

// inTime requires that a wait took less than bound, unless the machine has stalled since it began.
func (p *place) inTime(t *testing.T, began time.Time, took, bound time.Duration, wrong string) {
	t.Helper()
	if still := p.stalls.Longest(began, time.Now()); took >= bound && still > 0 {
		t.Logf("NOT JUDGED, as the machine stalled for %v: after %v: %s", still, took, wrong)
		return
	}
	require.Less(t, took, bound, wrong)
}

// oldServers selects Redis 6 if it is installed, or imitates it.
func oldServers() redistest.Option {
	if program := os.Getenv("REDLATCH_REDIS6"); program != "" {
		return redistest.WithRedis6(program)
	}
	return redistest.WithoutShardedPubSub()
}

// since returns the commands about a name since the last call.
func (p *place) since(t *testing.T, name string) []monitor.Call {
	t.Helper()
	calls, err := p.watches[p.cluster.Owner(t, name)].Since(name)
	require.NoError(t, err)
	return calls
}

// parked waits until a waiter that has sent its first command for the lock is asleep. It then has made its second
// attempt, after its subscription.
func (p *place) parked(t *testing.T, name string) {
	t.Helper()
	watch := p.watches[p.cluster.Owner(t, name)]
	for range 2 {
		_, err := watch.Until(name)
		require.NoError(t, err, "%s: no waiter", name)
	}
}

// modes returns the modes to test, by Redisson's names. ON requires servers with sharded pub/sub (see place.refused).
func (p *place) modes() []transport.Sharding {
	if p.sharded {
		return []transport.Sharding{transport.ShardingAuto, transport.ShardingOn, transport.ShardingOff}
	}
	return []transport.Sharding{transport.ShardingAuto, transport.ShardingOff}
}

// parties creates a client of each library for each mode. Clients with the same mode must have made the same choice.
func (p *place) parties(t *testing.T, java *peer.Peer) []party {
	t.Helper()
	all := []party{overRueidis(t, p.cluster, transport.ShardingAuto)}
	for _, mode := range p.modes() {
		ours, theirs := overGoRedis(t, p.cluster, mode), connect(t, java, p.cluster, mode.String(), nil)
		all = append(all, ours)
		if theirs.mode == "" && mode != transport.ShardingAuto {
			continue // one client in a release without the setting is enough
		}
		p.find(t, theirs)
		require.Equal(t, theirs.says, theirs.listens, "%s must receive its own messages", theirs.title())
		if theirs.mode != "" {
			require.Equal(t, theirs.says, ours.publishes(), "%s and %s", theirs.title(), ours.title())
		}
		all = append(all, theirs)
	}
	return all
}

// find determines how a Redisson client subscribes and how it publishes. For the first, it counts the subscribers while
// the client waits for a lock whose owner is not a client. For the second, it examines the client's unlock script.
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
		require.FailNow(t, "no subscription", j.title())
	}
	p.cluster.Do(t, "DEL", l.name)
	p.cluster.DoAt(t, l.name, j.listens, channel, "0")
	got := await(t, came, "a message of each kind")
	p.since(t, l.name)
	got.free(t)
	scripts := slices.DeleteFunc(p.since(t, l.name), func(c monitor.Call) bool { return c.Script == "" })
	require.NotEmpty(t, scripts, "%s did not release the lock", j.title())
	j.says = "PUBLISH" // literal in the scripts before 3.22
	if slices.ContainsFunc(scripts[0].Argv, func(arg string) bool { return strings.EqualFold(arg, "SPUBLISH") }) {
		j.says = "SPUBLISH"
	}
}

// listeners counts a channel's subscribers on the node of its slot.
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
	began, waited, freed time.Time // before the holder acquired, the waiter started, and the holder released
	free                 time.Time // when the lock was free
	came                 <-chan taken
	place                *place
}

const (
	// sleeperLease is the lease of the locks whose waiters are not woken.
	sleeperLease = 3 * time.Second
	// wakeBound is the time, from the start of its wait, within which a waiter that is woken acquires the lock. Without
	// a message, a Redlatch waiter would poll after five seconds for a fair lock and after ten seconds for a plain
	// lock, and a Redisson waiter after thirty seconds.
	wakeBound = 4800 * time.Millisecond
	// slack is the difference between the timers of two processes.
	slack = 50 * time.Millisecond
)

// String names both parties.
func (s sleeper) String() string {
	return fmt.Sprintf("%s waits, %s frees the %s lock", s.waits.title(), s.frees.title(), s.kind)
}

// meet makes one party release a lock while the other is asleep. It returns the time of the release and the result of
// the wait. It calls between before the release.
func (p *place) meet(t *testing.T, frees, waits party, l target, lease time.Duration, between ...func()) sleeper {
	t.Helper()
	s := sleeper{frees: frees, waits: waits, kind: l.what(), lease: lease, began: time.Now(), place: p}
	p.supply(t, l)
	free := frees.take(t, l, lease)
	p.since(t, l.name)
	s.waited = time.Now()
	s.came = waits.wait(t, l.waited())
	p.parked(t, l.name)
	if j, ok := waits.(*javaParty); ok && (l.kind.Name == locksuite.Writer.Name || l.isPermit()) {
		j.parked(t, l.waited())
	}
	for _, f := range between {
		f()
	}
	s.freed = free(t)
	s.free = time.Now()
	return s
}

// slept checks that the waiter slept until the lease it knew of expired, and no longer. It returns
// the time from the release to the waiter's acquisition.
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
