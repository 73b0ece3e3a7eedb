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
	// idle is how long a lock may lie free in calm times with waiters: some round trips.
	// Without a message they would wait for a heartbeat, a lease or the poll cap.
	idle = 500 * time.Millisecond
	// look is how often a free fair lock with a waiter in front that may be dead is looked at.
	look = time.Second
	// arrival is when a caller has its place in the queue of a fair lock: after it has
	// connected, subscribed, and sent its script twice.
	arrival = 250 * time.Millisecond
	// settle is what the resolving of a call in doubt may take besides a lease.
	settle = 10 * time.Second
)

// judge runs the checks of package history, and those that need a bubble: only there is it
// known what a fault can be blamed for.
func (f *fleet) judge(s *history.Story) []history.Finding {
	findings := s.Judge(history.Limits{Idle: f.idle(), Slack: time.Second, Aftermath: f.aftermath})
	findings = append(findings, f.checkOrder(s)...)
	for _, h := range s.Holds {
		if h.Renewed && h.Cause == "lost" && !disturbed(s, h) {
			findings = append(findings, history.Finding{Check: "needless", What: fmt.Sprintf(
				"%s of %s (%s) was lost at %v, and no fault was near", h.ID, h.Key, h.Owner, h.To)})
		}
	}
	return findings
}

// idle is the limit of this fleet. A client that goes while its acquire is under way can leave
// a place in a fair lock's queue, which is taken out with the next look once the lock is free.
func (f *fleet) idle() time.Duration {
	if len(f.plan.Faults) > 0 && slices.ContainsFunc(f.plan.Keys, func(k key) bool { return k.Fair }) {
		return idle + look
	}
	return idle
}

// disturbed reports whether a fault can be the reason why a hold was lost: the server forgot
// it, or could not be reached in the last third of its lease. What a fault has broken takes
// its client a while to notice.
func disturbed(s *history.Story, h *history.Hold) bool {
	return slices.ContainsFunc(s.Faults, func(f history.Record) bool {
		forgot := f.Key != "" && f.T < h.To
		return f.Until > h.Called && forgot || f.T < h.To && f.Until+2*commandTimeout > h.To-h.Lease/3
	})
}

// checkOrder checks that fair locks are had in the order of the calls, where no fault was near
// and no clock is wrong.
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
		var passed *history.Hold // of those that were granted later, the one that was called for first
		for _, h := range slices.Backward(holds) {
			if passed != nil && passed.Called+arrival < h.Called && f.calm(s, passed.Called, passed.From) {
				findings = append(findings, history.Finding{Check: "order", What: fmt.Sprintf(
					"%s: %s was called for at %v and granted at %v, %s at %v and %v",
					keyName(i), passed.ID, passed.Called, passed.From, h.ID, h.Called, h.From)})
			}
			if passed == nil || h.Called < passed.Called {
				passed = h
			}
		}
	}
	return findings
}

// calm reports whether no fault has to do with a stretch.
func (f *fleet) calm(s *history.Story, from, to history.Time) bool {
	return !slices.ContainsFunc(s.Faults, func(x history.Record) bool {
		return x.T < to && x.Until+f.aftermath(x, "") > from
	})
}

// aftermath is for how long a fault may have to do with a lock that lies free.
func (f *fleet) aftermath(_ history.Record, _ string) time.Duration {
	return f.longestLease() + 2*commandTimeout + keepAlive + 3*grace
}

// audit records what the server has of a hold that is valid.
func (f *fleet) audit(p *process, h *held) {
	if h.Err() != nil {
		return
	}
	r := history.Record{Kind: history.Audit, Key: h.Name(), Hold: h.id, Until: f.now() + h.Remaining(), Depth: 1}
	// Two commands are much faster than one script, and at one moment as good.
	count, ttl := f.ask("HGET", h.Name(), h.Owner().String()), f.ask("PTTL", h.Name())
	left, ok := ttl.(int64)
	if !ok || h.Err() != nil {
		return // it is loading
	}
	r.TTL = time.Duration(left) * time.Millisecond
	if count != nil {
		r.Count, _ = redis.Int64(count, nil)
	}
	if f.drifted.Load() {
		r.TTL = -1 // the margin is what the drift costs
	}
	p.write(r)
}

var (
	fleets   = flag.Int("fleets", testlevel.Rounds(5, 30), "how many fleets run")
	duration = flag.Duration("duration", 0, "how long fleets run; 0: until -fleets have run")
	seed     = flag.Uint64("seed", 1, "of the first fleet, from which the others count on; 0 is a random one")
)

func TestMain(m *testing.M) {
	// The server makes an interpreter for each script, mostly of memory that none needs.
	lua.RegistrySize, lua.CallStackSize = 1024, 64
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestFleets runs fleets that follow from their seeds, on all processors. The first that is
// not right ends it, and is made smaller.
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
	t.Errorf("seed %d failed, but not when it was run again:\n%s", s.seed, list(s.failed))
}

// search runs fleets until one is not right.
type search struct {
	first        uint64
	began        history.Time
	next         atomic.Uint64
	done, leases atomic.Int64

	mu     sync.Mutex // guards what follows
	failed []history.Finding
	seed   uint64 // of the one that failed
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

// tries is how often a plan is run that has failed: it does not say which of two goroutines
// comes first.
const tries = 5

// shrink runs the fleet of a seed again, and smaller ones, and fails the test with the
// smallest that is not right.
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
		rt.Logf("%s\nkeep it in testdata, as a test: %s", list(r.findings), text)
		rt.Fatalf("a fleet is not right: %s", r.findings[0].Check)
	})
}

// list returns the first findings, a line each.
func list(findings []history.Finding) string {
	var lines []string
	for _, f := range findings[:min(len(findings), 8)] {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// TestFleetsThatFoundBugs runs the plans of testdata, which found bugs of Redlatch or of a
// planted kind.
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

// TestPlanFollowsSeedAndText holds that a seed and a kept plan can be run again.
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
