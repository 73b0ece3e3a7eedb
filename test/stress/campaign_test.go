//go:build linux

package stress

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// user is the ACL user of the clients.
const (
	user     = "locks"
	password = "secret"
)

// plan describes a campaign.
type plan struct {
	seed     uint64
	duration time.Duration // total length of the rounds, without the judging
	round    time.Duration
	gap      time.Duration // maximum pause between faults
	kinds    []*fault
	keys     []worker.Key
	habits   worker.Habits
	workers  int
	callers  int
	forgets  bool           // server without persistence
	modest   bool           // the user may not kill connections
	least    int            // minimum number of acquisitions (0: 6)
	java     []peer.Program // Redisson clients that take part
}

// permits reports whether all keys are semaphores.
func (p *plan) permits() bool {
	return !slices.ContainsFunc(p.keys, func(k worker.Key) bool { return k.Permits == 0 })
}

// campaign is a running plan.
type campaign struct {
	t          *testing.T
	plan       plan
	dir        string
	server     *redistest.Server
	markServer *redistest.Server
	proxy      *redistest.Proxy
	log        *history.Writer // history of the injected faults
	slots      []*process
	all        []*process // including those that have exited
	java       []*redisson
	born       int // processes started so far
	round      int // counts from 1

	reader history.Follower
	owners history.Owners
	paths  []string
	report report
	byName map[string]*fault
	failed bool
}

// runCampaign runs a campaign and returns its report. It fails the test and stops after the first
// round with findings.
func runCampaign(t *testing.T, p plan) *report {
	t.Helper()
	c := open(t, p)
	s := newScheduler(p.seed, p.gap, p.kinds)
	for spent := time.Duration(0); spent < p.duration && !c.failed; spent += p.round {
		length := min(p.round, p.duration-spent)
		c.round++
		c.supply(t)
		c.sendAll(t, c.begins())
		var calm []func()
		for _, java := range c.java {
			calm = append(calm, java.begin(t))
		}
		c.fight(s.round(length), length)
		for _, rest := range calm {
			rest()
		}
		c.rest(t)
	}
	if !c.failed {
		c.leave(t)
	}
	if c.failed {
		t.Errorf("seed %d; the histories are kept in %s", p.seed, c.dir)
	} else {
		require.NoError(t, os.RemoveAll(c.dir))
	}
	return &c.report
}

func open(t *testing.T, p plan) *campaign {
	t.Helper()
	// t.TempDir would be removed when the test ends, but the histories of failed runs must be kept.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("stress-%d-%d", os.Getpid(), history.Now()))
	require.NoError(t, os.Mkdir(dir, 0o700))
	c := &campaign{t: t, plan: p, dir: dir, slots: make([]*process, p.workers), byName: map[string]*fault{}}
	c.report = report{Seed: p.seed, Faults: map[string]int{}, Outcomes: map[string]int{}}
	for _, f := range p.kinds {
		c.byName[f.name] = f
	}
	rights := []string{"--user", user, "on", ">" + password, "~*", "&*", "+@all"}
	if p.modest {
		rights = append(rights, "-client|kill")
	}
	args := append([]string{"--appendonly", "yes", "--appendfsync", "always"}, rights...)
	if p.forgets {
		args = rights
	}
	c.server = redistest.Start(t, redistest.WithArgs(args...))
	c.markServer = redistest.Start(t)
	c.proxy = redistest.NewProxy(t, c.server.Addr())
	path := filepath.Join(dir, "nemesis.jsonl")
	c.paths = append(c.paths, path)
	log, err := history.Create(path, "nemesis")
	require.NoError(t, err)
	c.log = log
	t.Cleanup(func() { require.NoError(t, c.log.Close()) })
	for i := range c.slots {
		c.slots[i] = c.start(t, i)
	}
	for _, program := range p.java {
		c.java = append(c.java, c.startJava(t, program))
	}
	return c
}

// start starts the next process in a slot.
func (c *campaign) start(t *testing.T, slot int) *process {
	t.Helper()
	c.born++
	p := startProcess(t, worker.Config{
		Process:    fmt.Sprintf("p%d.%d", slot, c.born),
		URL:        fmt.Sprintf("redis://%s:%s@%s", user, password, c.proxy.Addr()),
		Direct:     c.server.URL(),
		MarkServer: c.markServer.URL(),
		Seed:       c.plan.seed + uint64(c.born)<<32,
		Callers:    c.plan.callers,
		Keys:       c.plan.keys,
		Habits:     c.plan.habits,
	}, c.dir)
	c.paths, c.all = append(c.paths, p.path), append(c.all, p)
	return p
}

func (c *campaign) member(pick uint64) *process { return c.slots[pick%uint64(len(c.slots))] }

// replace waits until a process has exited, starts another one in its place, and sends it the command to begin.
func (c *campaign) replace(t *testing.T, pick uint64) {
	t.Helper()
	slot := int(pick % uint64(len(c.slots)))
	<-c.slots[slot].done
	c.slots[slot] = c.start(t, slot)
	c.slots[slot].send(t, c.begins())
}

// begins returns the command with which a round starts.
func (c *campaign) begins() string { return fmt.Sprint("go ", c.round) }

func (c *campaign) sendAll(t *testing.T, what string) {
	t.Helper()
	for _, p := range c.slots {
		p.send(t, what)
	}
}

// step is the start or the end of a fault.
type step struct {
	at  time.Duration
	run func()
}

// fight runs the schedule. If faults end and start at the same time, the ends run first.
func (c *campaign) fight(events []event, length time.Duration) {
	began := history.Now()
	pace := func(at time.Duration) { <-time.After(began + at - history.Now()) }
	var ends []step
	// until runs the ends that are due before at, then waits until at.
	until := func(at time.Duration) {
		for len(ends) > 0 {
			first := 0
			for i := range ends {
				if ends[i].at < ends[first].at {
					first = i
				}
			}
			if ends[first].at > at {
				break
			}
			end := ends[first]
			ends = append(ends[:first], ends[first+1:]...)
			pace(end.at)
			end.run()
		}
		pace(at)
	}
	for _, e := range events {
		until(e.at)
		ends = append(ends, step{e.at + e.length, c.strike(e)})
	}
	until(length)
}

// strike starts a fault and returns the function that ends it.
func (c *campaign) strike(e event) (end func()) {
	from := history.Now()
	mend, forgot := e.fault.begin(c, e)
	broken := history.Now()
	return func() {
		mend()
		until := history.Now()
		if forgot != "" && e.fault.name != history.Evicted && e.fault.name != "restarted empty" {
			until = broken
		}
		c.log.Write(history.Record{T: from, Kind: history.Fault, Op: e.fault.name, Key: forgot, Until: until})
		c.report.Faults[e.fault.name]++
	}
}

// aftermath returns for how long after a fault a lock may be free because of it.
func (c *campaign) aftermath(r history.Record, key string) time.Duration {
	f := c.byName[r.Op]
	for _, k := range c.plan.keys {
		if k.Name != key && (!k.Counter || !strings.HasPrefix(key, k.Name+".")) {
			continue
		}
		after := f.after
		if k.Fair {
			after = f.fairly
		}
		if f.lease {
			after += k.Lease
		}
		return after
	}
	return 0
}

// workerEnv holds the configuration of a test binary that runs as a client process.
const workerEnv = "REDLATCH_STRESS_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "stress worker:", err)
			os.Exit(1)
		}
		return
	}
	redistest.Main(m)
}

func serve(text string) error {
	var cfg worker.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	return worker.Serve(cfg, os.Stdin, os.Stdout)
}
