package rueidis_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestACluster(t *testing.T) {
	t.Parallel()
	redistest.EachCluster(t, storyOf)
}

// storyOf is the tests that share a cluster: each mends what it breaks, and the last one
// leaves it with a node less.
func storyOf(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	client := clientOf(t, lib.ClientOption{InitAddress: cluster.Addrs()[:1]})
	for _, c := range []struct {
		name string
		run  func(t *testing.T, cluster *redistest.Cluster, client lib.Client)
	}{
		{"the publish command is decided as Redisson does", publishCommandIsDecided},
		{"messages of both kinds wake, of a thousand channels over two connections to a node", bothKindsWake},
		{"locks of both kinds are what they are on one server", locksOfBothKinds},
		{"locks wait for replicas", locksWaitForReplicas},
		{"no call runs twice while slots move", slotsMove},
		{"locks go on while their slots move", locksWhileSlotsMove},
		{"a master that is killed is replaced, and its subscriptions move", masterIsKilled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, cluster, client) })
	}
}

func publishCommandIsDecided(t *testing.T, _ *redistest.Cluster, client lib.Client) {
	t.Helper()
	for sharding, want := range map[transport.Sharding]string{
		transport.ShardingAuto: "SPUBLISH", transport.ShardingOn: "SPUBLISH", transport.ShardingOff: "PUBLISH",
	} {
		tr := opened(t, client, redlatch.WithShardedPubSub(sharding))
		assert.Equal(t, want, tr.PublishCommand(), "%v", sharding)
		_, cluster := tr.(transport.Slotter)
		assert.True(t, cluster)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := rueidis.New(ctx, client)
	assert.ErrorIs(t, err, context.Canceled)
}

func bothKindsWake(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	const channels = 1000
	tr := opened(t, client)
	var subs [channels]transport.Subscription
	var wg sync.WaitGroup
	for i := range subs {
		wg.Go(func() { subs[i] = subscribe(t, tr, fmt.Sprint("channel", i)) })
	}
	wg.Wait()
	for i, sub := range subs {
		command := []string{"PUBLISH", "SPUBLISH"}[i%2]
		_, err := do(tr, command, fmt.Sprint("channel", i), command)
		require.NoError(t, err)
		assert.Equal(t, transport.Event{Payload: command}, event(t, sub))
	}
	for _, s := range cluster.Nodes() {
		assert.LessOrEqual(t, connections(t, s, "pubsub"), 2, "connections that listen to %s", s.Addr())
	}
}

// connections returns how many clients of a kind a server has.
func connections(t *testing.T, s *redistest.Server, kind string) (n int) {
	t.Helper()
	list, _ := s.Do(t, "CLIENT", "LIST", "TYPE", kind).([]byte)
	for _, b := range list {
		if b == '\n' {
			n++
		}
	}
	return n
}

// load runs INCR on keys of one slot until it is stopped, and holds that each call that
// was answered ran once.
type load struct {
	t       *testing.T
	tr      transport.Transport
	stopped atomic.Bool
	wg      sync.WaitGroup

	mu        sync.Mutex // guards what follows
	answered  int64
	uncertain int64
	failed    map[string]int
	longest   time.Duration // without an answer
	last      time.Time
}

func loadOn(t *testing.T, tr transport.Transport, key string) *load {
	t.Helper()
	l := &load{t: t, tr: tr, failed: map[string]int{}, last: time.Now()}
	for range 8 {
		l.wg.Go(func() {
			for !l.stopped.Load() {
				_, err := do(tr, "INCR", key)
				l.note(err)
				if err != nil {
					<-time.After(10 * time.Millisecond)
				}
			}
		})
	}
	return l
}

func (l *load) note(err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch class := refusalOrClass(err); class {
	case "":
		l.longest = max(l.longest, now.Sub(l.last))
		l.answered, l.last = l.answered+1, now
	case "uncertain":
		l.uncertain++
	default:
		l.failed[class]++
	}
}

// stop ends the load and compares the calls with what the server did.
func (l *load) stop(value any) {
	l.t.Helper()
	l.stopped.Store(true)
	l.wg.Wait()
	ran, err := strconv.ParseInt(string(value.([]byte)), 10, 64)
	require.NoError(l.t, err)
	l.t.Logf("%d answered, %d uncertain, %d ran, %v, longest without an answer %v",
		l.answered, l.uncertain, ran, l.failed, l.longest.Round(time.Millisecond))
	assert.GreaterOrEqual(l.t, ran, l.answered)
	assert.LessOrEqual(l.t, ran, l.answered+l.uncertain, "a call ran twice")
}

func refusalOrClass(err error) string {
	for _, class := range []string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN"} {
		if transport.IsCode(err, class) {
			return class
		}
	}
	return class(err)
}

func slotsMove(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	const key, channel = "moved:{slots}", "channel:{slots}"
	tr := opened(t, client)
	sub := subscribe(t, tr, channel)
	l := loadOn(t, tr, key)
	for range 3 {
		locksuite.MoveAway(t, cluster, key)
		require.True(t, event(t, sub).Gap)
		for _, command := range []string{"SPUBLISH", "PUBLISH"} {
			cluster.Do(t, command, channel, command)
			for e := event(t, sub); e.Payload != command; e = event(t, sub) {
				if e.Gap { // it may have been missed
					cluster.Do(t, command, channel, command)
				}
			}
		}
	}
	l.stopped.Store(true)
	l.wg.Wait()
	l.stop(cluster.Do(t, "GET", key))
	assert.Zero(t, l.uncertain, "nothing was broken")
}

// locksIn is the cluster for locks.
func locksIn(cluster *redistest.Cluster, client lib.Client) locksuite.Deployment {
	return locksuite.Deployment{New: sharing(client), Do: cluster.DoAt, Publish: []string{"SPUBLISH", "PUBLISH"}}
}

func locksOfBothKinds(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	locksuite.Run(t, locksIn(cluster, client))
}

func locksWaitForReplicas(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	locksIn(cluster, client).WaitsForReplicas(t, locksuite.ReplicasOf(cluster))
}

func locksWhileSlotsMove(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	for _, kind := range locksuite.Kinds {
		name := redistest.Key(t)
		group := locksIn(cluster, client).StartContenders(t, kind, 4, name)
		group.AwaitProgress(10)
		for range 2 {
			locksuite.MoveAway(t, cluster, name)
			group.AwaitProgress(10)
		}
		v := group.Exclusive()
		assert.Zero(t, v.Lost, kind.Name)
	}
}

func masterIsKilled(t *testing.T, cluster *redistest.Cluster, client lib.Client) {
	t.Helper()
	const key, channel = "killed:{dead}", "channel:{dead}"
	tr := opened(t, client)
	sub := subscribe(t, tr, channel)
	l := loadOn(t, tr, key)
	<-time.After(200 * time.Millisecond)
	owner := cluster.Owner(t, key)
	began := time.Now()
	owner.Kill()
	require.True(t, event(t, sub).Gap)
	t.Logf("gap after %v", time.Since(began).Round(time.Millisecond))
	cluster.AwaitOwner(t, key, owner)
	cluster.Do(t, "SPUBLISH", channel, "there")
	for e := event(t, sub); e.Payload != "there"; {
		e = event(t, sub)
	}
	_, err := do(tr, "INCR", key)
	require.NoError(t, err)
	l.stopped.Store(true)
	l.wg.Wait()
	// What ran on the old master and was not replicated is lost, so nothing is compared.
	t.Logf("%d answered, %d uncertain, %v, longest without an answer %v", l.answered, l.uncertain, l.failed, l.longest.Round(time.Millisecond))
}
