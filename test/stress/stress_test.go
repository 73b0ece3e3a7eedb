package stress

import (
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
