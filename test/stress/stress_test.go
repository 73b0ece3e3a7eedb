//go:build linux

// Package stress is the nemesis run: client processes that take locks in every way that
// there is, while servers, networks and processes are broken under them, and a checker of
// their histories. It needs Linux. Run it from the root of the checkout:
//
//	make stress DURATION=10m           a random seed, which it prints
//	make stress DURATION=10m SEED=7    the schedule of that seed again
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
//	           quit: nothing may be left ◀── leases run out, dead waiters are evicted
//
// The processes (see internal/worker) reach the locks' server through a proxy that breaks;
// they ask it past the proxy what it has, and leave marks on a second server, the audit
// server, which no fault touches. Each writes a history (see internal/history, which lists
// what is judged). A round ends with all faults healed and every call returned, so that the
// history of a round can be judged by itself, and a failure ends the run where it happened.
// At rest no lock may have a holder, and no queue a waiter, unless a process left it there:
// by dying, by letting it expire, by handing it over.
//
// # Two classes
//
// In the first, the server remembers: it is frozen, killed and started again with its
// append-only file, written at each command; its users lose their rights, its network holds
// back, delays and cuts; clients are frozen and killed. Two holders at once are an error,
// always. In the second it forgets: keys are deleted and evicted, everything is flushed, it
// starts again empty. Then two may hold a lock at once for a renewal period, and it is
// counted how often and how long they did.
//
// # The schedule
//
// Faults come in lanes: those of the server, of the network and of the processes. Those of
// one lane come one after the other, the lanes run in parallel. Each lane deals its kinds
// of faults like cards, so that every kind comes before one comes twice. Which fault comes
// when, for how long and for which process depends on the seed alone. What the processes do
// then is random too, but how it interleaves depends on the machine: a seed repeats the
// faults, not the run.
//
// # What it does not judge
//
// A process that was frozen cannot stop being inside: what it sends after it woke up may
// come late. So a hold counts until the deadline that the hold itself reported, and a mark
// only if the hold was valid after the reply to it. A holder that does not look at its hold
// cannot be helped by any lock.
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
	duration = flag.Duration("duration", 0, "how long faults come; 0 skips the run")
	seed     = flag.Uint64("seed", 0, "of the schedule; 0 is a random one")
)

// Leases: short ones are lost now and then, long ones show when a wake-up is.
const (
	short    = 3 * time.Second
	middling = 5 * time.Second
	long     = 20 * time.Second
	// forgetful is long enough that a renewal, a third of it, differs clearly from its end.
	forgetful = 15 * time.Second
)

// rwLocks makes so many read/write locks, with these leases in turn.
func rwLocks(n int, leases ...time.Duration) (keys []worker.Key) {
	for i := range n {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("rw-%d", i), ReadWrite: true, Lease: leases[i%len(leases)]})
	}
	return keys
}

// semaphores makes so many semaphores of permits with ids, and so many that only count, with
// these leases and numbers of permits in turn. Every third of them is served in strict order.
func semaphores(ids, counters int, permits []int, leases ...time.Duration) (keys []worker.Key) {
	for i := range ids {
		keys = append(keys, worker.Key{
			Name: fmt.Sprintf("sem-%d", i), Permits: permits[i%len(permits)], Strict: i%3 == 2, Exact: true, Lease: leases[i%len(leases)],
		})
	}
	for i := range counters {
		keys = append(keys, worker.Key{
			Name: fmt.Sprintf("count-%d", i), Permits: 10 * permits[i%len(permits)], Counter: true, Strict: i%3 == 2, Lease: leases[i%len(leases)],
		})
	}
	return keys
}

// locks makes so many plain and so many fair locks, with these leases in turn. Every third of
// them has tokens.
func locks(plain, fair int, leases ...time.Duration) (keys []worker.Key) {
	for i := range plain {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("plain-%d", i), Fenced: i%3 == 2, Lease: leases[i%len(leases)]})
	}
	for i := range fair {
		keys = append(keys, worker.Key{Name: fmt.Sprintf("fair-%d", i), Fair: true, Fenced: i%3 == 2, Lease: leases[i%len(leases)]})
	}
	return keys
}

// TestStress is the nemesis run, for -duration: five eighths of it with a server that
// remembers, one with a live Redisson in addition, and two with a server that is made to
// forget.
func TestStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t, "stress"), duration: *duration * 5 / 8, round: 30 * time.Second, gap: usualGap,
		kinds: remembering,
		keys: slices.Concat(locks(6, 6, short, middling, short, long, middling, long), rwLocks(4, short, middling, short, long),
			semaphores(2, 1, []int{3, 5}, short, middling)),
		habits: worker.Usual(), workers: 4, callers: 12,
	}
	t.Run("the server remembers", func(t *testing.T) { runAndReport(t, "remembers", p) })
	mixed := p
	mixed.duration, mixed.kinds, mixed.keys = *duration/8, safeForRedisson, locks(3, 3, middling)
	mixed.keys = append(mixed.keys, rwLocks(2, middling)...) // one lease: Redisson's readers cut to theirs
	mixed.workers, mixed.callers = 2, 3
	if program, ok := findJava(t, release); ok {
		mixed.java = []peer.Program{program}
		t.Run("Redisson takes part", func(t *testing.T) { runAndReport(t, "with Redisson", mixed) })
	}
	p.kinds, p.forgets, p.duration = forgetting, true, *duration/4
	p.keys = slices.Concat(locks(4, 4, forgetful), rwLocks(2, forgetful))
	t.Run("the server forgets", func(t *testing.T) { runAndReport(t, "forgets", p) })
}

// TestReadWriteStress is what `make stress RUN=TestReadWriteStress` runs: readers and writers of two Redissons and
// of Redlatch, for -duration.
func TestReadWriteStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t, "stress-rw"), duration: *duration, round: 30 * time.Second, gap: usualGap,
		kinds: safeForRedisson, keys: rwLocks(3, middling, short, middling),
		habits: worker.Usual(), workers: 3, callers: 5,
	}
	for _, release := range []string{"4.3.1", "4.7.0"} {
		program, ok := findJava(t, release)
		require.True(t, ok, "this run is about Redisson: scripts/compat.sh %s", release)
		p.java = append(p.java, program)
	}
	runAndReport(t, "readers and writers", p)
}

// chooseSeed returns -seed, or a random one, and prints how its schedule is repeated. It
// skips the test if there is no -duration.
func chooseSeed(t *testing.T, target string) uint64 {
	t.Helper()
	if *duration == 0 {
		t.Skipf("no -duration: this is what `make %s` runs", target)
	}
	chosen := *seed
	for chosen == 0 {
		chosen = rand.Uint64()
	}
	fmt.Printf("stress: seed %d: repeat its schedule with make %s DURATION=%v SEED=%d\n", chosen, target, *duration, chosen)
	return chosen
}

func runAndReport(t *testing.T, class string, p plan) {
	t.Helper()
	r := runCampaign(t, p)
	r.Class, r.Seconds = class, p.duration.Seconds()
	require.NoError(t, r.print(os.Stdout))
	require.NoError(t, r.record(os.Stdout))
	if t.Failed() {
		return
	}
	// A run in which little happened proves little.
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
		assert.NotZero(t, r.Overlaps, "a server that forgets makes overlaps: they were not seen")
	default:
		assert.NotZero(t, r.Judged)
		assert.NotZero(t, r.Resumed)
		assert.True(t, r.Lost > 0 || p.duration < 2*time.Minute, "no lock was lost")
		assert.NotZero(t, r.Outcomes["lock: killed"])
		assert.NotZero(t, r.Outcomes["lock: uncertain"])
	}
}

// Small campaigns, each with the faults and the habits that find one kind of bug for which few fleets on fake
// time look. Their seed is fixed.

// focus returns the plan that they have in common: no fault, and plain habits.
func focus(t *testing.T) plan {
	t.Helper()
	testlevel.All(t, "a quarter of a minute of faults for each kind of bug")
	return plan{
		seed: 1, duration: 12 * time.Second, round: 6 * time.Second, gap: 1500 * ms,
		keys: locks(3, 3, short), workers: 2, callers: 6,
	}
}

// runAllFaults wages a campaign that must find nothing, and must have done something.
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
	// A caller that has had the lock does not come back for it, and so wakes no other.
	p.kinds, p.keys = []*fault{unsubscribedOnce}, locks(1, 0, long)
	p.habits = worker.Habits{Linger: 1, Rest: time.Minute}
	p.workers, p.callers = 6, 1
	p.duration, p.round = 24*time.Second, 12*time.Second
	p.least = 4 // a holder may stay for 4 s, and the last one of a round is cut short
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
