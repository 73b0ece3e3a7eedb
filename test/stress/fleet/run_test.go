//go:build linux

package fleet

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// Settings of all fleets.
const (
	commandTimeout = time.Second
	// pollCap is long, so that a missed wake-up is noticed.
	pollCap = 30 * time.Second
	// grace is the shortest grace period for dead waiters.
	grace = 5 * time.Second
	// overhead is how long a call may take in addition to its wait. It allows for one attempt and for another one after
	// the script has been loaded, each on a new connection.
	overhead = 4 * commandTimeout
	// forever is the time limit for a wait without a limit, and therefore for a whole fleet.
	forever = 30 * time.Minute
)

func margin(lease time.Duration) time.Duration { return min(lease/10, time.Second) }

// fleet is one run of a plan in a bubble.
type fleet struct {
	plan      plan
	began     time.Time
	server    *embedded.Server
	processes []*process
	networks  sync.WaitGroup
	ids       atomic.Int64
	drifted   atomic.Bool // the server's clock differs from the bubble's

	mu       sync.Mutex // guards the fields below
	records  []history.Record
	labels   map[string]string // latest label of each owner
	given    map[int][]*held   // handed-over holds, by key
	findings []history.Finding

	direct struct {
		mu   sync.Mutex // guards conn; serializes queries, which take no fake time
		conn redis.Conn
	}
}

// result is the outcome of a plan.
type result struct {
	findings []history.Finding
	records  []history.Record
	leases   int
}

// run runs a plan in a bubble and judges it.
func run(t *testing.T, p plan) result {
	t.Helper()
	f := &fleet{plan: p, labels: map[string]string{}, given: map[int][]*held{}}
	f.live(t)
	story := history.NewStory(f.records)
	return result{append(f.findings, f.judge(story)...), f.records, len(story.Holds)}
}

// live runs the plan. The bubble panics if a goroutine leaks.
func (f *fleet) live(t *testing.T) {
	t.Helper()
	defer func() {
		if err := recover(); err != nil {
			buf := make([]byte, 1<<20)
			f.find("goroutines", "%v\n%s", err, buf[:runtime.Stack(buf, true)])
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f.begin()
		f.work()
		f.rest()
		f.end()
	})
}

func (f *fleet) now() history.Time { return time.Since(f.began) + time.Second }

func (f *fleet) write(r history.Record) {
	if r.T == 0 {
		r.T = f.now()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

func (f *fleet) find(check, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.findings = append(f.findings, history.Finding{Check: check, What: fmt.Sprintf(format, args...)})
}

func (f *fleet) nextID() string { return fmt.Sprint(f.ids.Add(1)) }

// label returns a name for an owner, which is valid until the owner releases the lock.
func (f *fleet) label(op string, outer, h *held) string {
	owner := h.Owner().String()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case outer != nil:
		return outer.label
	case op != "resume":
		f.labels[owner] = owner + "#" + h.id
	}
	return f.labels[owner]
}

func (f *fleet) handOver(h *held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given[h.key] = append(f.given[h.key], h)
}

func (f *fleet) handed(key int) (*held, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.given[key]
	if len(all) == 0 {
		return nil, false
	}
	f.given[key] = all[1:]
	return all[0], true
}

func (f *fleet) lease(pick func(a, b ms) ms) time.Duration {
	l := f.plan.Keys[0].Lease
	for _, k := range f.plan.Keys {
		l = pick(l, k.Lease)
	}
	return l.d()
}

func (f *fleet) shortestLease() time.Duration { return f.lease(func(a, b ms) ms { return min(a, b) }) }
func (f *fleet) longestLease() time.Duration  { return f.lease(func(a, b ms) ms { return max(a, b) }) }

// ask sends a command directly to the server. It retries if a fault cuts the connection, and
// returns nil if the server rejects the command.
func (f *fleet) ask(command string, args ...any) any {
	f.direct.mu.Lock()
	defer f.direct.mu.Unlock()
	for {
		reply, err := f.direct.conn.Do(command, args...)
		if err == nil {
			return reply
		}
		if f.direct.conn.Err() == nil {
			return nil
		}
		_ = f.direct.conn.Close() // broken
		f.dialDirect()
	}
}

func (f *fleet) dialDirect() {
	var err error
	if f.direct.conn, err = f.server.Dial(context.Background()); err != nil {
		panic(err) // the server outlives the fleet
	}
}

func (f *fleet) list(command string, args ...any) []string {
	all, err := redis.Strings(f.ask(command, args...), nil)
	if err != nil {
		f.find("server", "%s: %v", command, err)
	}
	return all
}

func (f *fleet) expires(key string) bool {
	left, err := redis.Int64(f.ask("PTTL", key), nil)
	return err == nil && left > 0
}

// begin starts the server and the clients.
func (f *fleet) begin() {
	f.began = time.Now()
	var err error
	if f.server, err = embedded.Start(embedded.WithInProcess()); err != nil {
		panic(err) // it does not listen
	}
	f.dialDirect()
	for i, c := range f.plan.Clients {
		p := &process{fleet: f, name: fmt.Sprintf("client-%d", i), plan: c, holds: map[*held]struct{}{}}
		p.ctx, p.kill = context.WithCancel(context.Background())
		p.network = f.network(c, uint64(i))
		if err := p.open(); err != nil {
			panic(err) // the options are valid
		}
		f.processes = append(f.processes, p)
	}
}

func (f *fleet) network(c client, number uint64) *network {
	return &network{
		server: f.server, latency: c.Latency.d() + 50*time.Microsecond, ahead: c.Ahead.d(),
		seed: f.plan.Seed<<8 | number, wg: &f.networks, conns: map[*link]struct{}{},
	}
}

// work runs the callers and the faults until both have ended.
func (f *fleet) work() {
	var faults, callers sync.WaitGroup
	for _, x := range f.plan.Faults {
		faults.Go(func() { f.strike(x) })
	}
	for _, p := range f.processes {
		for _, steps := range p.plan.Callers {
			c := &caller{process: p, steps: steps}
			callers.Go(c.run)
		}
	}
	faults.Wait()
	done := make(chan struct{})
	go func() {
		defer close(done)
		callers.Wait()
	}()
	timeout := time.NewTimer(forever)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C: // the history has the calls that have not returned
		f.find("stuck", "callers are still running %v after the last fault", forever)
		for _, p := range f.processes {
			p.kill()
		}
		<-done
	}
}

// rest waits until calls with uncertain results have been resolved, and looks for leftovers while the clients are open.
// Without faults, all results are certain, and a lock that is granted too late is released immediately.
func (f *fleet) rest() {
	if len(f.plan.Faults) == 0 {
		time.Sleep(2 * commandTimeout)
	} else {
		time.Sleep(f.longestLease() + settle)
	}
	var owners history.Owners
	f.mu.Lock()
	owners.Add(slices.Clone(f.records))
	f.mu.Unlock()
	for i := range f.plan.Keys {
		for _, place := range []string{"HKEYS", "LRANGE"} {
			for _, owner := range f.owners(place, keyName(i)) {
				if owners.Explains(f.labelOf(owner)) == "" {
					f.find("leftover", "%s of %s has %s, left by no caller", place, keyName(i), owner)
				}
			}
		}
	}
}

func (f *fleet) owners(place, key string) []string {
	if place == "HKEYS" {
		return f.list(place, key)
	}
	return f.list(place, queueOf(key), 0, -1)
}

func queueOf(key string) string { return "redisson_lock_queue:{" + key + "}" }

func (f *fleet) labelOf(owner string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if label := f.labels[owner]; label != "" {
		return label
	}
	return owner
}

// end closes all clients, waits until leases have expired and dead waiters were evicted, and looks
// for leftovers.
func (f *fleet) end() {
	for _, p := range f.processes {
		p.close("close", p.current(), 0, (*redlatch.Client).Close)
	}
	f.visit()
	time.Sleep(f.longestLease() + keepAlive + settle)
	f.leftovers()
	_ = f.direct.conn.Close() // closes the server's end
	f.server.Close()
	f.networks.Wait()
}

// visit acquires the fair locks that have a queue, behind the dead waiters.
func (f *fleet) visit() {
	c, err := redlatch.New(f.server.Dial, redlatch.WithDeadWaiterGrace(grace))
	if err != nil {
		panic(err) // the options are valid
	}
	defer func() { _ = c.Close() }() // it does not hold a lock
	for i := range f.plan.Keys {
		name := keyName(i)
		if len(f.owners("LRANGE", name)) == 0 {
			continue
		}
		hold, err := rfairlock.New(c, name).Lock(context.Background(), rlock.WithWait(time.Minute))
		if err == nil {
			err = hold.Unlock()
		}
		if err != nil {
			f.find("dead waiters", "%s: %v", name, err)
		}
	}
}

// leftovers looks for keys, channels and connections on the server at the end.
func (f *fleet) leftovers() {
	for _, name := range f.list("KEYS", "*") {
		switch {
		case strings.HasPrefix(name, "redisson_lock_token:"): // Redisson also leaves the counters
		case strings.HasPrefix(name, "redlatch:label:") && f.expires(name): // of a killed client
		default:
			f.find("left behind", "key %s", name)
		}
	}
	for _, name := range f.list("PUBSUB", "CHANNELS") {
		f.find("left behind", "channel %s", name)
	}
	for _, p := range f.processes {
		if n := p.network.open(); n > 0 {
			f.find("left behind", "%d connections of %s", n, p.name)
		}
	}
}
