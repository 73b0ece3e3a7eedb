//go:build linux

// Package stress runs client processes that acquire and release locks while faults hit the servers, the network and the
// processes. It then checks their histories. It requires Linux. Run it from the root of the checkout:
//
//	make stress DURATION=10m           with a random seed, which is printed
//	make stress DURATION=10m SEED=7    with the schedule for this seed
//
// # A campaign
//
//	servers, proxy, processes
//	    │
//	    ▼
//	round: go ──▶ faults by the schedule ──▶ heal ──▶ drain ──▶ at rest: judge
//	    ▲                                                            │
//	    └────────────────────────────────────────────────────────────┤
//	                                             the time is over    ▼
//	           quit: nothing may be left ◀── leases expire, dead waiters are evicted
//
// The processes (see internal/worker) reach the locks' server through a proxy that injects faults. They query the
// server directly, and add marks on a second server, the audit server, which does not have faults. Each process writes
// a history (see internal/history, which contains the checks). A round ends when all faults have healed and all calls
// have returned. Each round is judged separately, and a run stops after the round that failed. At rest, locks must not
// have holders, and queues must not have waiters, unless a process left them there: it died, let the lock expire, or
// handed it over.
//
// # Two classes
//
// In the first class, the server does not lose data. It is stopped, killed, and restarted with its append-only file, to
// which it writes before each reply. Its users lose permissions. Its network stalls, delays data and cuts connections.
// Clients are stopped and killed. Two concurrent holders are always an error. In the second class, the server loses
// data: keys are deleted or evicted, everything is flushed, or the server restarts empty. Two clients may then hold a
// lock for up to one renewal period. The report contains the number and length of these overlaps.
//
// # The schedule
//
// The server, the network and the processes each have a lane of faults. The faults in one lane run sequentially, and
// the lanes run in parallel. Each lane deals its kinds of faults like cards, so that every kind occurs before one is
// repeated. The seed alone determines the kind, time, length and target of each fault. The actions of the processes are
// also random, but how they interleave depends on the machine. Therefore a seed repeats the faults, but not the run.
//
// # Limits
//
// A stopped process cannot stop its work, and its requests may arrive late after it has been resumed. Therefore a hold
// counts until the deadline that the process itself reported, and a mark counts only if the hold was still valid after
// the reply to it. A lock cannot protect a holder that does not check its hold.
package stress

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

var (
	duration = flag.Duration("duration", 0, "length of the run; 0 skips it")
	seed     = flag.Uint64("seed", 0, "seed of the schedule; 0 for a random one")
)

// Short leases are sometimes lost. With long leases, a missed wake-up is noticed.
const (
	short    = 3 * time.Second
	middling = 5 * time.Second
	long     = 20 * time.Second
	// forgetful is long enough to distinguish a renewal, after a third of the lease, from the end of the lease.
	forgetful = 15 * time.Second
)

// rwLocks returns n read/write locks and cycles through the leases.
func rwLocks(n int, leases ...time.Duration) (keys []worker.Key) {
	for i := range n {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("rw-%d", i), ReadWrite: true, Lease: leases[i%len(leases)]})
	}
	return keys
}

// semaphores returns semaphores with permit IDs and semaphores without, and cycles through the
// leases and numbers of permits.
func semaphores(ids, counters int, permits []int, leases ...time.Duration) (keys []worker.Key) {
	for i := range ids {
		keys = append(keys, worker.Key{
			Name: fmt.Sprintf("sem-%d", i), Permits: permits[i%len(permits)], Exact: true, Lease: leases[i%len(leases)],
		})
	}
	for i := range counters {
		keys = append(keys, worker.Key{
			Name: fmt.Sprintf("count-%d", i), Permits: 10 * permits[i%len(permits)], Counter: true, Lease: leases[i%len(leases)],
		})
	}
	return keys
}

// locks returns plain and fair locks and cycles through the leases. Every third one has tokens.
func locks(plain, fair int, leases ...time.Duration) (keys []worker.Key) {
	for i := range plain {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("plain-%d", i), Fenced: i%3 == 2, Lease: leases[i%len(leases)]})
	}
	for i := range fair {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("fair-%d", i), Fair: true, Fenced: i%3 == 2, Lease: leases[i%len(leases)]})
	}
	return keys
}

// TestStress runs for -duration. For five eighths of this time, the server does not lose data. In one eighth, a live
// Redisson client also takes part. In two eighths, the server loses data.
func TestStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t), duration: *duration * 5 / 8, round: 30 * time.Second, gap: usualGap,
		kinds: remembering,
		keys: slices.Concat(locks(6, 6, short, middling, short, long, middling, long), rwLocks(4, short, middling, short, long),
			semaphores(2, 1, []int{3, 5}, short, middling)),
		habits: worker.Usual(), workers: 4, callers: 12,
	}
	t.Run("without data loss", func(t *testing.T) { runAndReport(t, "remembers", p) })
	mixed := p
	mixed.duration, mixed.kinds, mixed.keys = *duration/8, safeForRedisson, locks(3, 3, middling)
	mixed.keys = append(mixed.keys, rwLocks(2, middling)...) // with the same lease, because Redisson's readers shorten others
	mixed.workers, mixed.callers = 2, 3
	if program, ok := findJava(t, release); ok {
		mixed.java = []peer.Program{program}
		t.Run("with Redisson", func(t *testing.T) { runAndReport(t, "with Redisson", mixed) })
	}
	p.kinds, p.forgets, p.duration = forgetting, true, *duration/4
	p.keys = slices.Concat(locks(4, 4, forgetful), rwLocks(2, forgetful))
	t.Run("with data loss", func(t *testing.T) { runAndReport(t, "forgets", p) })
}

// TestReadWriteStress runs readers and writers of Redlatch and of two Redisson clients for -duration (make stress
// RUN=TestReadWriteStress).
func TestReadWriteStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t), duration: *duration, round: 30 * time.Second, gap: usualGap,
		kinds: safeForRedisson, keys: rwLocks(3, middling, short, middling),
		habits: worker.Usual(), workers: 3, callers: 5,
	}
	for _, release := range []string{"4.3.1", "4.7.0"} {
		program, ok := findJava(t, release)
		require.True(t, ok, "this run needs Redisson: run scripts/compat.sh %s", release)
		p.java = append(p.java, program)
	}
	runAndReport(t, "readers and writers", p)
}

// chooseSeed returns -seed or a random seed, and prints the command that repeats its schedule. It
// skips the test without -duration.
func chooseSeed(t *testing.T) uint64 {
	t.Helper()
	if *duration == 0 {
		t.Skipf("no -duration: run make stress RUN=%s", t.Name())
	}
	chosen := *seed
	for chosen == 0 {
		chosen = rand.Uint64()
	}
	fmt.Printf("stress: seed %d: repeat its schedule with make stress RUN=%s DURATION=%v SEED=%d\n", chosen, t.Name(), *duration, chosen)
	return chosen
}

func runAndReport(t *testing.T, class string, p plan) {
	t.Helper()
	r := runCampaign(t, p)
	r.Class, r.Seconds = class, p.duration.Seconds()
	require.NoError(t, r.print(os.Stdout))
	if t.Failed() {
		return
	}
	// A run with few acquisitions proves little.
	assert.Greater(t, r.Acquisitions, int(p.duration.Seconds()), "progress")
	assert.NotZero(t, r.Marks)
	assert.NotZero(t, r.Audits)
	rounds := int(p.duration/p.round) + 1
	if p.duration > newScheduler(p.seed, p.gap, p.kinds).takes()+time.Duration(rounds)*p.gap {
		for _, f := range p.kinds {
			assert.NotZero(t, r.Faults[f.name], "%s", f.name)
		}
	}
	if len(p.java) > 0 {
		assert.NotZero(t, r.Outcomes["redisson: ok"])
	}
	if p.permits() {
		assert.NotZero(t, r.Stocks)
		return
	}
	assert.NotZero(t, r.Reentries)
	switch {
	case len(p.java) > 0:
	case p.duration < 20*time.Second:
	case p.forgets:
		assert.NotZero(t, r.Overlaps, "data loss caused no overlap")
	default:
		assert.NotZero(t, r.Judged)
		assert.NotZero(t, r.Resumed)
		assert.True(t, r.Lost > 0 || p.duration < 2*time.Minute, "no lock was lost")
		assert.NotZero(t, r.Outcomes["lock: killed"])
		assert.NotZero(t, r.Outcomes["lock: uncertain"])
	}
}

// Small campaigns, each with the faults and habits that find one kind of bug, which few fleets on
// fake time exercise. Their seed is fixed.

// focus returns their common plan: no faults and plain habits.
func focus(t *testing.T) plan {
	t.Helper()
	testlevel.All(t, "15 s of faults for each kind of bug")
	return plan{
		seed: 1, duration: 12 * time.Second, round: 6 * time.Second, gap: 1500 * ms,
		keys: locks(3, 3, short), workers: 2, callers: 6,
	}
}

// runAllFaults runs a campaign that must have acquisitions and no findings.
func runAllFaults(t *testing.T, p plan) *report {
	t.Helper()
	r := runCampaign(t, p)
	if !t.Failed() {
		assert.GreaterOrEqual(t, r.Acquisitions, cmp.Or(p.least, 6), "progress")
		for _, f := range p.kinds {
			assert.NotZero(t, r.Faults[f.name], "%s", f.name)
		}
	}
	return r
}

func TestUnsubscribedWaitersTakeFreeLock(t *testing.T) {
	p := focus(t)
	// A caller that has had the lock does not return and so wakes no other caller.
	p.kinds, p.keys = []*fault{unsubscribedOnce}, locks(1, 0, long)
	p.habits = worker.Habits{Linger: 1, Rest: time.Minute}
	p.workers, p.callers = 6, 1
	p.duration, p.round = 24*time.Second, 12*time.Second
	p.least = 4 // a holder may keep it for 4 s, and the last one of a round is cut short
	runAllFaults(t, p)
}

func TestReadersShareAndWritersExclude(t *testing.T) {
	p := focus(t)
	p.keys = rwLocks(2, short)
	p.habits = worker.Habits{Reenter: 0.4, Cancel: 0.1, Linger: 0.02}
	p.callers = 10
	runAllFaults(t, p)
}

func TestHeldPermitsStayWithinLimit(t *testing.T) {
	p := focus(t)
	p.kinds, p.gap = []*fault{cut, killed, stopped, unanswered}, 500*ms
	p.keys = semaphores(3, 1, []int{1, 3, 5}, short)
	p.habits = worker.Usual()
	p.habits.Replace, p.workers, p.callers = false, 3, 5
	p.duration, p.round = 9*time.Second, 9*time.Second
	if program, ok := findJava(t, release); ok {
		inexact(p.keys)
		p.java = []peer.Program{program}
	}
	r := runAllFaults(t, p)
	assert.Greater(t, r.Stocks, 10, "semaphores were counted")
}

func TestCutReplyCountsOnce(t *testing.T) {
	p := focus(t)
	p.kinds, p.gap = []*fault{cut}, 200*ms
	p.keys = locks(12, 0, middling)
	runAllFaults(t, p)
}

func TestDelayedRequestLeavesNoLock(t *testing.T) {
	p := focus(t)
	p.kinds, p.modest = []*fault{lateOne}, true
	p.keys = locks(24, 0, long)
	runAllFaults(t, p)
}

func TestCanceledWaitersPassWakeUps(t *testing.T) {
	p := focus(t)
	p.keys = locks(1, 0, long)
	p.habits = worker.Habits{Cancel: 0.985, Together: 0.7}
	p.workers, p.callers = 1, 60
	p.duration, p.round = 24*time.Second, 8*time.Second
	runAllFaults(t, p)
}
