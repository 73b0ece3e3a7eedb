//go:build linux

package fleet

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// idle is the time for which a lock with waiters may stay free in a calm period, which is a few round trips. A
	// waiter that does not receive a message would wait for a heartbeat, a lease or the poll cap.
	idle = 500 * time.Millisecond
	// look is the interval at which a free fair lock is checked if its first waiter may be dead.
	look = time.Second
	// arrival is the time that a caller needs until it is queued for a fair lock, because it connects, subscribes, and
	// sends its script twice.
	arrival = 250 * time.Millisecond
	// settle is the time, in addition to a lease, that it may take to resolve a call whose result is uncertain.
	settle = 10 * time.Second
)

// judge runs the checks of package history and the checks that need a bubble, which knows the
// effects of its faults.
func (f *fleet) judge(s *history.Story) []history.Finding {
	findings := s.Judge(history.Limits{Idle: f.idle(), Slack: time.Second, Aftermath: f.aftermath})
	findings = append(findings, f.checkOrder(s)...)
	for _, h := range s.Holds {
		if h.Renewed && h.Cause == "lost" && !disturbed(s, h) {
			findings = append(findings, history.Finding{Check: "needless", What: fmt.Sprintf(
				"%s of %s (%s) was lost at %v without a fault near it", h.ID, h.Key, h.Owner, h.To)})
		}
	}
	return findings
}

// idle returns the limit of this fleet. A client that is closed during an acquire can leave a place
// in a fair lock's queue, which is evicted with the next check once the lock is free.
func (f *fleet) idle() time.Duration {
	if len(f.plan.Faults) > 0 && slices.ContainsFunc(f.plan.Keys, func(k key) bool { return k.Fair }) {
		return idle + look
	}
	return idle
}

// disturbed reports whether a fault may have caused the loss of a hold, because the server lost the key or was
// unreachable in the last third of the lease. Clients need some time to notice a fault.
func disturbed(s *history.Story, h *history.Hold) bool {
	return slices.ContainsFunc(s.Faults, func(f history.Record) bool {
		forgot := f.Key != "" && f.T < h.To
		return f.Until > h.Called && forgot || f.T < h.To && f.Until+2*commandTimeout > h.To-h.Lease/3
	})
}

// checkOrder checks that fair locks are granted in the order of the calls, except near faults and
// for clients with a wrong clock.
func (f *fleet) checkOrder(s *history.Story) (findings []history.Finding) {
	if slices.ContainsFunc(f.plan.Clients, func(c client) bool { return c.Ahead != 0 }) {
		return nil
	}
	for i, k := range f.plan.Keys {
		if !k.Fair {
			continue
		}
		holds := slices.DeleteFunc(slices.Clone(s.ByKey[keyName(i)]), func(h *history.Hold) bool {
			return h.Outer != "" || s.Calls[h.ID].Op == "resume"
		})
		var passed *history.Hold // the hold with the earliest call among those that were granted later
		for _, h := range slices.Backward(holds) {
			if passed != nil && passed.Called+arrival < h.Called && f.calm(s, passed.Called, passed.From) {
				findings = append(findings, history.Finding{Check: "order", What: fmt.Sprintf(
					"%s: %s was requested at %v and granted at %v, but %s at %v and %v",
					keyName(i), passed.ID, passed.Called, passed.From, h.ID, h.Called, h.From)})
			}
			if passed == nil || h.Called < passed.Called {
				passed = h
			}
		}
	}
	return findings
}

// calm reports whether no fault affects a period.
func (f *fleet) calm(s *history.Story, from, to history.Time) bool {
	return !slices.ContainsFunc(s.Faults, func(x history.Record) bool {
		return x.T < to && x.Until+f.aftermath(x, "") > from
	})
}

// aftermath returns for how long after a fault a lock may be free because of it.
func (f *fleet) aftermath(_ history.Record, _ string) time.Duration {
	return f.longestLease() + 2*commandTimeout + keepAlive + 3*grace
}

// audit records the server's state for a valid hold.
func (f *fleet) audit(p *process, h *held) {
	if h.Err() != nil {
		return
	}
	r := history.Record{Kind: history.Audit, Key: h.Name(), Hold: h.id, Until: f.now() + h.Remaining(), Depth: 1}
	// Two commands are much faster than a script, and no fake time passes between them.
	count, ttl := f.ask("HGET", h.Name(), h.Owner().String()), f.ask("PTTL", h.Name())
	left, ok := ttl.(int64)
	if !ok || h.Err() != nil {
		return // the server is loading
	}
	r.TTL = time.Duration(left) * time.Millisecond
	if count != nil {
		r.Count, _ = redis.Int64(count, nil)
	}
	if f.drifted.Load() {
		r.TTL = -1 // drift uses up the margin
	}
	p.write(r)
}

var (
	fleets   = flag.Int("fleets", testlevel.Rounds(5, 30), "number of fleets")
	duration = flag.Duration("duration", 0, "time limit; 0: run -fleets fleets")
	seed     = flag.Uint64("seed", 1, "seed of the first fleet, incremented for each of the others; 0 for a random one")
)

func TestMain(m *testing.M) {
	// By default, the server's Lua interpreters allocate far more memory than the scripts need.
	lua.RegistrySize, lua.CallStackSize = 1024, 64
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestFleets runs fleets with consecutive seeds on all processors. It stops at the first failure,
// and shrinks it.
func TestFleets(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
		t.Logf("the first seed is %d", first)
	}
	s := &search{first: first, began: history.Now()}
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	took := history.Now() - s.began
	fmt.Printf("fleet: %d fleets and %d leases in %v, %.0f leases a minute\n",
		s.done.Load(), s.leases.Load(), took.Round(10*time.Millisecond), float64(s.leases.Load())/took.Minutes())
	if s.failed == nil {
		assert.Positive(t, s.leases.Load())
		return
	}
	fmt.Printf("fleet: seed %d, after %v: repeat it with make fleet FLEETS=1 SEED=%d\n", s.seed, took, s.seed)
	shrink(t, s.seed)
	t.Errorf("seed %d failed, but passed when it was repeated:\n%s", s.seed, list(s.failed))
}

// search runs fleets until one fails.
type search struct {
	first        uint64
	began        history.Time
	next         atomic.Uint64
	done, leases atomic.Int64

	mu     sync.Mutex // guards the fields below
	failed []history.Finding
	seed   uint64 // the failed seed
}

func (s *search) work(t *testing.T) {
	t.Helper()
	for !s.over() {
		number := s.first + s.next.Add(1) - 1
		r := run(t, plans.Example(int(number)))
		s.done.Add(1)
		s.leases.Add(int64(r.leases))
		if len(r.findings) > 0 {
			s.mu.Lock()
			s.failed, s.seed = r.findings, number
			s.mu.Unlock()
		}
	}
}

func (s *search) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *duration > 0 {
		return s.failed != nil || history.Now()-s.began >= *duration
	}
	return s.failed != nil || s.next.Load() >= uint64(max(*fleets, 0))
}

// tries is the number of times that a failed plan is run, because a plan does not determine which of two goroutines
// runs first.
const tries = 5

// shrink repeats the fleet of a seed, then smaller ones, and fails the test with the smallest one
// that fails.
func shrink(t *testing.T, number uint64) {
	t.Helper()
	for name, value := range map[string]string{
		"seed": fmt.Sprint(number), "checks": "1", "nofailfile": "true",
	} {
		require.NoError(t, flag.Set("rapid."+name, value))
	}
	rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
		p := plans.Draw(rt, "plan")
		r := run(t, p)
		for more := tries; len(r.findings) == 0 && more > 1; more-- {
			r = run(t, p)
		}
		if len(r.findings) == 0 {
			return
		}
		text, err := json.Marshal(p)
		require.NoError(rt, err)
		if testing.Verbose() {
			for _, record := range r.records {
				rt.Logf("%v %s %s %s %s hold %s %s %s", record.T, record.P, record.Kind, record.ID+record.Key, record.Op, record.Hold, record.Owner, record.Err)
			}
		}
		rt.Logf("%s\nkeep this plan in testdata: %s", list(r.findings), text)
		rt.Fatalf("fleet failed: %s", r.findings[0].Check)
	})
}

// list returns the first findings, one per line.
func list(findings []history.Finding) string {
	var lines []string
	for _, f := range findings[:min(len(findings), 8)] {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// TestFleetsThatFoundBugs runs the plans in testdata, which found bugs or planted bugs.
func TestFleetsThatFoundBugs(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var p plan
			require.NoError(t, json.Unmarshal(text, &p))
			for range tries {
				require.Empty(t, run(t, p).findings)
			}
		})
	}
}

// TestPlanFollowsSeedAndText checks that a seed and a saved plan can be repeated.
func TestPlanFollowsSeedAndText(t *testing.T) {
	t.Parallel()
	p := plans.Example(5)
	assert.Equal(t, p, plans.Example(5))
	assert.NotEqual(t, p, plans.Example(6))
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var read plan
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, p, read)
}
