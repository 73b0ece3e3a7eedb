// Package scale simulates processes that wait for one lock or hold many, and counts commands, messages and server time.
package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	us      = time.Microsecond
	tick    = 10 * us          // of the simulation
	renewal = 10 * time.Second // a third of the lease
)

// load is a workload. Each process has some callers for each of its locks; they acquire and release it repeatedly.
type load struct {
	fair                       bool
	processes, callers         int           // a plain lock has one caller per process
	locks, contenders, servers int           // contenders is the number of processes per lock
	hold, delay                time.Duration // delay is the mean for replies and messages
}

// sim is a discrete-event simulation. Each server runs its commands one after another, in the order of their arrival.
// Their costs are processor time of the main thread of Redis 7.0.15, including reading and writing.
type sim struct {
	load
	rand     *rand.Rand
	now      time.Duration
	events   map[time.Duration][]func()
	free     []time.Duration // when each server has run all its commands
	counts   map[string]int  // by command; also message and µs of server time
	handOver []time.Duration // from a release until the next caller knows that it has the lock
}

type process struct{ holders []*caller }

type lock struct {
	holder  *caller
	waiting []*caller     // subscribers of a plain lock, or the queue of a fair lock
	freed   time.Duration // when the last release was sent
}

type caller struct {
	*sim
	*process
	*lock
	server   int
	waits    bool // it has been queued or subscribed
	asleep   bool
	notified bool          // since its last attempt
	due      time.Duration // the renewal, or 0
}

// simulate returns a simulation with counts for the time d after the warm-up.
func simulate(w load, seed uint64, warmUp, d time.Duration) *sim {
	s := &sim{load: w, rand: rand.New(rand.NewPCG(seed, 0)), free: make([]time.Duration, w.servers)}
	s.events, s.counts = map[time.Duration][]func(){}, map[string]int{}
	s.after(warmUp-tick, func() { clear(s.counts); s.handOver = nil })
	processes, locks := make([]process, w.processes), make([]lock, w.locks)
	for i := range w.locks * w.contenders * w.callers {
		p, l := i/w.callers%w.processes, i/w.callers/w.contenders
		c := &caller{sim: s, process: &processes[p], lock: &locks[l], server: l % w.servers}
		s.after(s.random(warmUp/2), c.attempt)
		if i%w.callers == 0 {
			s.after(s.random(warmUp/2), c.poll)
			s.after(s.random(warmUp/2), c.beat)
		}
	}
	for ; s.now < warmUp+d; s.now += tick {
		for _, run := range s.events[s.now] {
			run()
		}
		delete(s.events, s.now)
	}
	return s
}

// after calls run after d, rounded up to the next tick.
func (s *sim) after(d time.Duration, run func()) {
	at := (s.now + d).Truncate(tick) + tick
	s.events[at] = append(s.events[at], run)
}

func (s *sim) random(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(s.rand.Int64N(int64(mean)))
}

// call sends a command, which also sends a message to some callers.
func (c *caller) call(name string, cost time.Duration, to []*caller, reply func()) {
	cost += time.Duration(len(to)) * 8 * us
	c.free[c.server] = max(c.now, c.free[c.server]) + cost
	ran, n := c.free[c.server]-c.now, len(to)
	for _, o := range to {
		c.after(ran+c.random(c.delay), func() {
			if o.notified = true; o.asleep {
				o.attempt()
			}
		})
	}
	c.after(ran+c.random(c.delay), func() {
		c.counts[name]++
		c.counts["message"] += n
		c.counts["server-µs"] += int(cost / us)
		reply()
	})
}

func (c *caller) attempt() {
	c.asleep, c.notified = false, false
	granted := c.holder == nil && (!c.fair || len(c.waiting) == 0 || c.waiting[0] == c)
	cost, subscribe := 20*us, !c.waits && !c.fair // callers of a fair lock stay subscribed
	switch n := float64(len(c.waiting)); {
	case granted && c.fair:
		cost = time.Duration(max(60+0.8*n, 2*n-7000)) * us
		c.holder, c.waiting = c, c.waiting[min(1, len(c.waiting)):]
	case granted:
		c.holder = c
	case !c.waits:
		c.waits, c.waiting = true, append(c.waiting, c)
	}
	c.call("acquire", cost, nil, func() {
		switch {
		case granted:
			c.granted()
		case subscribe:
			c.call("SUBSCRIBE", 11*us, nil, c.attempt)
		case c.notified:
			c.attempt()
		default:
			c.asleep = true
		}
	})
}

func (c *caller) granted() {
	is := func(o *caller) bool { return o == c }
	if c.waits && !c.fair {
		c.waiting = slices.DeleteFunc(c.waiting, is)
		c.call("UNSUBSCRIBE", 11*us, nil, func() {})
	}
	c.waits = false
	c.handOver = append(c.handOver, c.now-c.freed)
	c.holders = append(c.holders, c)
	c.renewAt(c.now + renewal)
	c.after(c.hold, func() {
		c.due, c.holders = 0, slices.DeleteFunc(c.holders, is)
		c.holder, c.freed = nil, c.now
		to := c.waiting
		if c.fair {
			to = to[:min(1, len(to))]
		}
		c.call("release", 20*us, to, c.attempt)
	})
}

// renewAt also renews the process's other locks that are due within a second, but in a cluster, their slots differ.
func (c *caller) renewAt(due time.Duration) {
	c.due = due
	c.after(due-c.now, func() {
		if c.due != due {
			return
		}
		n := 0
		for _, o := range c.holders {
			if o == c || c.servers == 1 && o.due <= c.now+time.Second {
				o.renewAt(c.now + renewal)
				n++
			}
		}
		c.call("renew", 17*us+time.Duration(n)*2100, nil, func() {})
	})
}

// poll makes an attempt every ten seconds for a process and lock. The library polls ten seconds after the last message.
func (c *caller) poll() {
	if c.asleep {
		c.attempt()
	}
	c.after(10*time.Second, c.poll)
}

// beat sends heartbeats for a process that waits for a fair lock, and counts subscribers of owners in the queue.
func (c *caller) beat() {
	if n := float64(len(c.waiting)); c.fair {
		c.call("PUBSUB", 28*us, nil, func() {})
		c.call("heartbeat", time.Duration(max(60+1.2*n, 2.8*n-42_000))*us, nil, func() {
			c.after(time.Duration(min(max(n, 1000), 6000))*5*time.Millisecond, c.beat)
		})
	}
}

func TestSimulationCountsMatchLibrary(t *testing.T) {
	testlevel.All(t, "it takes seconds of processor time")
	for name, w := range map[string]load{
		"plain": {processes: 5, contenders: 5, callers: 1, locks: 1, hold: 100 * time.Millisecond},
		"fair":  {processes: 10, contenders: 10, callers: 5, locks: 1, hold: 100 * time.Millisecond, fair: true},
		"many":  {processes: 100, contenders: 2, callers: 1, locks: 50, hold: 21 * time.Second},
	} {
		w.servers, w.delay = 1, time.Millisecond
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { compare(t, w) }) })
	}
}

func compare(t *testing.T, w load) {
	t.Helper()
	warmUp, d := 10*time.Second, 150*w.hold/time.Duration(w.locks)
	srv := redistest.Mini(t, embedded.WithInProcess())
	ctx, cancel := context.WithTimeout(t.Context(), warmUp+d)
	defer cancel()
	meter := faketransport.Meter{Delay: func() time.Duration { return w.delay/2 + rand.N(w.delay) }}
	time.AfterFunc(warmUp, func() { meter.Reset() })
	sent := make(chan map[string]int, 1)
	time.AfterFunc(warmUp+d, func() { sent <- meter.Reset() })
	var running sync.WaitGroup
	for p := range w.processes {
		client := callers.Over(t, srv, meter.Over)
		for i := p; i < w.locks*w.contenders; i += w.processes {
			lock := rlock.New(client, fmt.Sprint("lock", i/w.contenders))
			if w.fair {
				lock = rfairlock.New(client, fmt.Sprint("lock", i/w.contenders))
			}
			for range w.callers {
				running.Go(func() {
					time.Sleep(warmUp/4 + rand.N(warmUp/2))
					for ctx.Err() == nil {
						_ = lock.Do(ctx, func(context.Context) error { time.Sleep(w.hold); return nil })
					}
				})
			}
		}
	}
	running.Wait()
	counts, simulated := <-sent, simulate(w, 1, warmUp, d).counts
	for _, name := range []string{"acquire", "release", "renew", "heartbeat", "PUBSUB"} {
		n := counts[name] + counts["fair_"+name]
		require.InDelta(t, n, simulated[name], 2+0.1*float64(n), name)
	}
}

// BenchmarkTables prints the figures that docs/model/README.md summarizes.
func BenchmarkTables(b *testing.B) {
	const d = 40 * time.Second
	many := load{processes: 1000, callers: 1, locks: 100_000, contenders: 2, servers: 1, hold: 21 * time.Second, delay: 500 * us}
	tables := []load{many, many}
	tables[1].servers = 3
	for _, n := range []int{10, 100, 300, 600, 1000, 2000, 10_000} {
		plain := load{processes: n, callers: 1, locks: 1, contenders: n, servers: 1, hold: 10 * time.Millisecond, delay: 500 * us}
		fair := plain
		fair.fair, fair.callers = true, 10
		tables = append(tables, plain, fair)
	}
	for i := range 2 * len(tables) {
		w, seed := tables[i/2], uint64(i%2)
		b.Run(fmt.Sprintf("%+v/seed=%d", w, seed), func(b *testing.B) {
			s := simulate(w, seed, 2*d, d)
			for name, n := range s.counts {
				b.ReportMetric(float64(n)/d.Seconds(), name+"/s")
			}
			slices.Sort(s.handOver)
			if n := len(s.handOver); n > 0 {
				b.ReportMetric(s.handOver[n*99/100].Seconds()*1000, "ms-p99")
			}
		})
	}
}
