// Package failovers tests both adapters while the master is replaced, either manually or after it was killed or paused.
// Each lock has a holder and a waiter. A lock that is acquired after replication was stopped is lost: the holder gets
// ErrLost, and the waiter acquires the lock. Trials permit a lost lock to have two holders for a while, but count such
// locks.
package failovers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

type failure struct {
	name    string
	planned bool
	silent  bool // whether the connections stay open
	strike  func(tb testing.TB, p deployment) (after func())
}

var failures = []failure{
	{"by hand", true, false, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		p.failover(tb)
		return func() {}
	}},
	{"killed", false, false, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		master, _ := p.master(tb)
		master.Kill()
		return func() {}
	}},
	{"frozen", false, true, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		master, _ := p.master(tb)
		master.Pause()
		return master.Resume
	}},
}

type pair struct {
	lock *rlock.Lock
	hold *rlock.Hold
	free time.Time // when the holder released the lock; zero if it lost it

	mu       sync.Mutex // guards the fields below
	notified time.Time
	got      time.Time
}

type trial struct {
	t     *testing.T
	place deployment
	loses bool
	ctx   context.Context //nolint:containedctx // canceled when the trial ends
	wg    sync.WaitGroup

	holders, waiters *redlatch.Client
	kept, lost       []*pair
	contenders       []*locksuite.Contenders
	struck           time.Time
}

type size struct {
	locks int
	lease time.Duration
}

func (f failure) try(t *testing.T, p deployment, s size) Figures {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := locksuite.Deployment{New: p.open}
	tr := &trial{
		t: t, place: p, loses: !f.planned || !p.careful, ctx: ctx,
		holders: d.Client(t, redlatch.WithWatchdogTimeout(s.lease)), waiters: d.Client(t),
	}
	t.Cleanup(func() { cancel(); tr.wg.Wait() })
	tr.kept = tr.take(s.locks, p.prefix+"kept")
	inStep(t, p)
	if tr.loses {
		cutOff(t, p)
	}
	tr.lost = tr.take(s.locks, p.prefix+"lost")
	tr.queue()
	for _, kind := range locksuite.Kinds {
		tr.contenders = append(tr.contenders, d.StartContenders(t, kind, 3, p.prefix+kind.Name))
	}
	tr.progress(10)
	p.settled(t)
	tr.struck = time.Now()
	after := f.strike(t, p)
	tr.recover()
	after()
	tr.progress(100)
	return tr.figures()
}

func (tr *trial) take(locks int, name string) []*pair {
	tr.t.Helper()
	pairs := make([]*pair, locks)
	for i := range pairs {
		l := rlock.New(tr.holders, fmt.Sprintf("%s-%d", name, i))
		hold, err := l.Lock(tr.ctx)
		require.NoError(tr.t, err)
		p := &pair{lock: l, hold: hold}
		tr.wg.Go(func() { p.watch(tr.ctx) })
		pairs[i] = p
	}
	return pairs
}

func (p *pair) watch(ctx context.Context) {
	<-p.hold.Context(ctx).Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.hold.Err(), redlatch.ErrLost) {
		p.notified = time.Now()
	}
}

func (tr *trial) queue() {
	tr.t.Helper()
	var channels []string
	for _, p := range append(tr.kept[:len(tr.kept):len(tr.kept)], tr.lost...) {
		channels = append(channels, codec.LockChannel(p.lock.Name()))
		l := rlock.New(tr.waiters, p.lock.Name())
		tr.wg.Go(func() { p.wait(tr.ctx, l) })
	}
	listened(tr.t, tr.place, channels)
}

func (p *pair) wait(ctx context.Context, l *rlock.Lock) {
	for ctx.Err() == nil {
		if _, err := l.Lock(ctx); err == nil {
			p.mu.Lock()
			p.got = time.Now()
			p.mu.Unlock()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func has(pairs []*pair) bool {
	for _, p := range pairs {
		p.mu.Lock()
		done := !p.got.IsZero() && (!p.free.IsZero() || !p.notified.IsZero())
		p.mu.Unlock()
		if !done {
			return false
		}
	}
	return true
}

func (tr *trial) recover() {
	tr.t.Helper()
	if tr.loses {
		assert.Eventually(tr.t, func() bool { return has(tr.lost) }, soon, 5*time.Millisecond, "a waiter of a lost lock still waits, or its holder did not get ErrLost")
	}
	tr.progress(10)
	free := tr.kept
	if !tr.loses {
		free = append(free[:len(free):len(free)], tr.lost...)
	}
	for _, p := range free {
		if p.hold.Err() != nil {
			continue
		}
		p.free = time.Now()
		assert.NoError(tr.t, p.hold.Unlock())
	}
	assert.Eventually(tr.t, func() bool { return has(free) }, soon, 5*time.Millisecond, "a waiter waits for a free lock")
}

func (tr *trial) progress(n int) {
	tr.t.Helper()
	for _, c := range tr.contenders {
		c.AwaitProgress(n)
	}
}

const (
	soon         = time.Minute
	announceTime = 2500 * time.Millisecond // Sentinels announce the master every two seconds
)

// Adapter creates transports. Each is for one client.
type Adapter struct {
	Name      string
	Cluster   func(tb testing.TB, c *redistest.Cluster) transport.Transport
	Sentinels func(tb testing.TB, set *redistest.Sentinels) transport.Transport
}

type deployment struct {
	open     func(tb testing.TB) transport.Transport
	prefix   string
	master   func(tb testing.TB) (*redistest.Server, []*redistest.Server) // returns the locks' master and its replicas
	failover func(tb testing.TB)                                          // replaces the master manually
	careful  bool                                                         // whether a failover waits for replication
	settled  func(tb testing.TB)
}

func inCluster(a Adapter, c *redistest.Cluster, tag string) deployment {
	master := func(tb testing.TB) (*redistest.Server, []*redistest.Server) {
		tb.Helper()
		m := c.Owner(tb, tag)
		return m, c.Replicas(tb, m)
	}
	return deployment{
		open:   func(tb testing.TB) transport.Transport { tb.Helper(); return a.Cluster(tb, c) },
		prefix: "{" + tag + "}",
		master: master,
		failover: func(tb testing.TB) {
			tb.Helper()
			_, replicas := master(tb)
			c.Failover(tb, replicas[0])
		},
		careful: true,
		settled: func(testing.TB) {},
	}
}

func withSentinels(a Adapter, set *redistest.Sentinels) deployment {
	return deployment{
		open: func(tb testing.TB) transport.Transport { tb.Helper(); return a.Sentinels(tb, set) },
		master: func(tb testing.TB) (*redistest.Server, []*redistest.Server) {
			tb.Helper()
			m := set.Master(tb)
			return m, slices.DeleteFunc(set.Servers(), func(s *redistest.Server) bool { return s == m })
		},
		failover: func(tb testing.TB) { tb.Helper(); set.Failover(tb) },
		settled:  func(tb testing.TB) { tb.Helper(); announced(tb, set) },
	}
}

// announced waits until the Sentinels have announced the master and have left TILT mode, in which they do not act.
func announced(tb testing.TB, set *redistest.Sentinels) {
	tb.Helper()
	time.Sleep(announceTime)
	for _, s := range set.Sentinels() {
		require.Eventually(tb, func() bool {
			info, _ := s.Do(tb, "INFO", "sentinel").([]byte)
			return strings.Contains(string(info), "sentinel_tilt:0")
		}, soon, 100*time.Millisecond, "a Sentinel is in TILT: the machine is too busy")
	}
}

func inStep(tb testing.TB, p deployment) {
	tb.Helper()
	master, replicas := p.master(tb)
	keys := master.Do(tb, "DBSIZE")
	for _, r := range replicas {
		require.Eventually(tb, func() bool { return r.Do(tb, "DBSIZE") == keys }, soon, 5*time.Millisecond, "a replica lacks locks")
	}
}

// cutOff stops replication. It changes the replication ID, so that the replicas need a full synchronization.
func cutOff(tb testing.TB, p deployment) {
	tb.Helper()
	master, _ := p.master(tb)
	master.Do(tb, "CONFIG", "SET", "repl-diskless-sync", "yes")
	master.Do(tb, "CONFIG", "SET", "repl-diskless-sync-delay", "3600")
	master.Do(tb, "DEBUG", "CHANGE-REPL-ID")
	master.KillClients(tb, "replica")
	require.Eventually(tb, func() bool { return len(master.Replicas(tb)) == 0 }, soon, 5*time.Millisecond, "a replica is not cut off")
}

func listened(tb testing.TB, p deployment, channels []string) {
	tb.Helper()
	master, _ := p.master(tb)
	require.Eventually(tb, func() bool {
		heard := " " + strings.Join(master.Channels(tb), " ") + " "
		return !slices.ContainsFunc(channels, func(c string) bool { return !strings.Contains(heard, " "+c+" ") })
	}, soon, 20*time.Millisecond, "the waiters are not subscribed")
}
