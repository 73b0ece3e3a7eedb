//go:build linux

package fleet

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// ms is a number of milliseconds, for readable plans.
type ms int64

func (m ms) d() time.Duration { return time.Duration(m) * time.Millisecond }

// plan describes a fleet. It is data, so that a plan that found a bug can be kept as JSON and does not change when the
// generator changes.
type plan struct {
	// Seed determines the jitter of every packet.
	Seed    uint64
	Keys    []key
	Clients []client
	Faults  []fault `json:",omitempty"`
}

type key struct {
	Fair, Fenced bool `json:",omitempty"`
	// Lease is the lease of its acquisitions.
	Lease ms
}

// client represents a process.
type client struct {
	// Latency is the one-way delay of a packet.
	Latency ms
	// Ahead is the time by which its clock is ahead. The client uses the server's time, and receives a time that is
	// later by this duration.
	Ahead ms `json:",omitempty"`
	// Callers are the steps of each of its goroutines.
	Callers [][]step
}

// step is one use of a lock.
type step struct {
	// Rest is the time before the call.
	Rest ms
	Key  int
	Call call
	// Limit is the maximum wait for callWait and callCancel.
	Limit ms `json:",omitempty"`
	Terms terms
	// Work is the time for which the caller holds the lock. Inner is the number of times that it reenters it.
	Work  ms
	Inner int `json:",omitempty"`
	Leave leave
}

// call selects the acquiring call.
type call string

const (
	callLock   call = "lock"   // without a time limit
	callWait   call = "wait"   // WithWait
	callCancel call = "cancel" // its context ends
	callTry    call = "try"
	callResume call = "resume" // resumes a hold that another caller handed over, or is callLock if there is none
)

// terms selects the lease.
type terms string

const (
	termsRenewed terms = "renewed"
	termsFixed   terms = "fixed"
	termsMaxHold terms = "max-hold"
)

// leave selects how a hold is released.
type leave string

const (
	leaveUnlock   leave = "unlock"
	leaveExpire   leave = "let-expire"
	leaveHandOver leave = "hand-over"
)

// fault has a start, At, and the length, For, unless it is instantaneous.
type fault struct {
	Kind   faultKind
	At     ms
	For    ms `json:",omitempty"`
	Client int
	Key    int `json:",omitempty"`
}

// often returns n copies of v, so that v has the weight n in rapid.SampledFrom.
func often[V any](n int, v V) []V {
	all := make([]V, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func mix[V any](parts ...[]V) *rapid.Generator[V] {
	var all []V
	for _, p := range parts {
		all = append(all, p...)
	}
	return rapid.SampledFrom(all)
}

// Generators. Rapid shrinks to the first values.
var (
	calls = mix(often(10, callLock), often(3, callWait), often(3, callCancel), often(3, callTry), often(1, callResume))
	deals = mix(often(10, termsRenewed), often(3, termsFixed), often(2, termsMaxHold))
	exits = mix(often(16, leaveUnlock), often(1, leaveExpire), often(1, leaveHandOver))
	rests = rapid.SampledFrom([]ms{0, 1, 5, 10, 30, 100, 1000})
	works = rapid.SampledFrom([]ms{0, 1, 2, 5, 10, 20, 50, 100, 700, 4000, 17_000})
	waits = rapid.SampledFrom([]ms{1, 3, 10, 30, 100, 300, 1000, 5000})
	lasts = rapid.SampledFrom([]ms{10, 100, 500, 1100, 2500, 5000, 11000})
)

func genStep(keys []key) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		s := step{
			Rest: rests.Draw(t, "rest"), Key: rapid.IntRange(0, len(keys)-1).Draw(t, "key"), Call: calls.Draw(t, "call"),
			Terms: deals.Draw(t, "terms"), Work: works.Draw(t, "work"),
			Inner: rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "inner"), Leave: exits.Draw(t, "leave"),
		}
		if s.Call == callWait || s.Call == callCancel || s.Terms == termsMaxHold {
			s.Limit = waits.Draw(t, "limit")
		}
		if s.Call == callWait && keys[s.Key].Fair {
			// By Redisson's rule, a waiter with a short wait behind waiters with long waits may be
			// overdue immediately. It is queued again with a heartbeat, which is too late for the
			// checks.
			s.Call = callCancel
		}
		return s
	})
}

func genClient(keys []key) *rapid.Generator[client] {
	return rapid.Custom(func(t *rapid.T) client {
		return client{
			Latency: rapid.SampledFrom([]ms{1, 0, 1, 3, 10}).Draw(t, "latency"),
			Ahead:   rapid.SampledFrom([]ms{0, 0, 0, 0, 0, 0, 0, 0, 700, -700, 60_000, -60_000}).Draw(t, "ahead"),
			Callers: rapid.SliceOfN(rapid.SliceOfN(genStep(keys), 1, 24), 1, 5).Draw(t, "callers"),
		}
	})
}

var genKey = rapid.Custom(func(t *rapid.T) key {
	return key{
		Fair: rapid.Bool().Draw(t, "fair"), Fenced: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "fenced"),
		Lease: rapid.SampledFrom([]ms{3000, 5000, 15_000}).Draw(t, "lease"),
	}
})

func genFault(clients, keys int) *rapid.Generator[fault] {
	return rapid.Custom(func(t *rapid.T) fault {
		return fault{
			Kind: rapid.SampledFrom(faultKinds).Draw(t, "fault"), At: ms(rapid.IntRange(0, 12_000).Draw(t, "at")),
			For: lasts.Draw(t, "for"), Client: rapid.IntRange(0, clients-1).Draw(t, "client"),
			Key: rapid.IntRange(0, keys-1).Draw(t, "of"),
		}
	})
}

// plans generates all fleets. A quarter of them do not have faults, so that all limits are tight.
var plans = rapid.Custom(func(t *rapid.T) plan {
	p := plan{Seed: rapid.Uint64Max(1<<32).Draw(t, "seed"), Keys: rapid.SliceOfN(genKey, 1, 3).Draw(t, "keys")}
	p.Clients = rapid.SliceOfN(genClient(p.Keys), 1, 5).Draw(t, "clients")
	if most := rapid.SampledFrom([]int{0, 2, 5, 10}).Draw(t, "most"); most > 0 {
		p.Faults = rapid.SliceOfN(genFault(len(p.Clients), len(p.Keys)), 1, most).Draw(t, "faults")
	}
	return p
})

type faultKind string

// Faults of one client, then faults of the server.
const (
	slowUp    faultKind = "slow up"    // requests arrive when the fault ends
	slowDown  faultKind = "slow down"  // replies arrive when the fault ends
	pause     faultKind = "pause"      // both: looks like a paused process
	loseUp    faultKind = "lose up"    // its connections drop requests from now on
	loseDown  faultKind = "lose down"  // its connections drop replies from now on
	partition faultKind = "partition"  // both, and new connections fail
	cut       faultKind = "cut"        // its connections are reset and data in flight is lost
	repeat    faultKind = "repeat"     // its connections are reset; requests in flight arrive late, after newer ones
	refuse    faultKind = "refuse"     // its connections are reset, and new ones fail
	kill      faultKind = "kill"       // the process dies
	replace   faultKind = "replace"    // it is closed, and its callers continue with a new client
	shutdown  faultKind = "shutdown"   // the same with Shutdown
	freeze    faultKind = "freeze"     // the server stalls
	restart   faultKind = "restart"    // it restarts with its data and without its scripts
	loading   faultKind = "loading"    // it rejects all commands
	loseReply faultKind = "lose reply" // it runs commands and cuts their connections
	drift     faultKind = "drift"      // its clock runs ahead by less than the loss margin
	clockStep faultKind = "clock step" // its clock jumps ahead by more than any lease
	empty     faultKind = "empty"      // it restarts without its data
	forget    faultKind = "forget"     // it loses one lock
)

var faultKinds = []faultKind{
	slowUp, slowDown, pause, loseUp, loseDown, partition, cut, repeat, refuse, kill, replace, shutdown,
	freeze, restart, loading, loseReply, drift, clockStep, empty, forget,
}

// driftStep is slightly less than a tenth of the smallest loss margin, because a plan has up to ten
// faults.
const driftStep = 25 * time.Millisecond

// strike runs a fault and returns when it has ended.
func (f *fleet) strike(x fault) {
	time.Sleep(x.At.d())
	r := history.Record{Kind: history.Fault, Op: string(x.Kind)}
	r.T = f.now()
	r.Until = r.T
	if f.strikeServer(x, &r) || f.processes[x.Client].strike(x, &r) {
		r.Until += x.For.d()
	}
	f.write(r)
	if x.Kind == loading {
		time.Sleep(x.For.d())
		f.server.Heal()
	}
}

// strike starts a client fault and reports whether it lasts.
func (p *process) strike(x fault, r *history.Record) (lasts bool) {
	n, span := p.network, x.For.d()
	switch x.Kind {
	case slowUp:
		n.hold(up, span)
	case slowDown:
		n.hold(down, span)
	case pause:
		n.hold(up, span)
		n.hold(down, span)
	case loseUp:
		n.each(func(l *link) { l.lose(up) })
	case loseDown:
		n.each(func(l *link) { l.lose(down) })
	case partition:
		n.refuse(span)
		n.each(func(l *link) { l.lose(up, down) })
	case cut:
		n.each(func(l *link) { l.cut(0) })
	case repeat:
		n.each(func(l *link) { l.cut(span) })
	case refuse:
		n.refuse(span)
		n.each(func(l *link) { l.cut(0) })
	default:
		p.end(x, r)
		return false
	}
	return true
}

// end runs the faults that end a client.
func (p *process) end(x fault, r *history.Record) {
	switch x.Kind {
	case kill:
		p.die(r.T)
	case replace, shutdown:
		old := p.current()
		if p.ctx.Err() != nil || p.open() != nil {
			return
		}
		if x.Kind == replace {
			p.close("close", old, 0, (*redlatch.Client).Close)
			return
		}
		p.close("shutdown", old, x.For.d(), func(c *redlatch.Client) error {
			ctx, cancel := context.WithTimeout(context.Background(), x.For.d())
			defer cancel()
			return c.Shutdown(ctx)
		})
	}
}

// die ends the process as far as others can see.
func (p *process) die(at history.Time) {
	p.mu.Lock()
	var live []*held
	for h := range p.holds {
		live = append(live, h)
	}
	p.mu.Unlock()
	for _, h := range live {
		p.valid(h)
	}
	p.write(history.Record{T: at, Kind: history.Kill})
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.network.refuse(-1)
	p.network.each(func(l *link) { l.cut(0) })
	p.kill()
}

// strikeServer starts a server fault and reports whether it lasts.
func (f *fleet) strikeServer(x fault, r *history.Record) (lasts bool) {
	span := x.For.d()
	switch x.Kind {
	case freeze:
		for _, p := range f.processes {
			p.network.hold(up, span)
			p.network.hold(down, span)
		}
	case restart:
		f.down(span)
	case empty:
		f.down(span)
		if f.ask("FLUSHALL") != nil { // nil: the server is loading
			r.Key = "*"
		}
		f.write(history.Record{T: r.T, Until: r.T + span, Kind: history.Fault, Op: "down"})
		return false
	case loading:
		f.server.FailWith("LOADING Redis is loading the dataset in memory")
	default:
		f.strikeKeys(x, r)
		return false
	}
	return true
}

// strikeKeys runs the instantaneous faults of the server.
func (f *fleet) strikeKeys(x fault, r *history.Record) {
	switch x.Kind {
	case loseReply:
		f.server.LoseReplies(1 + int(x.For)%3)
	case drift:
		f.drifted.Store(true)
		f.server.FastForward(driftStep)
	case clockStep:
		f.drifted.Store(true)
		f.server.FastForward(f.longestLease() + x.For.d())
		r.Key = "*"
	case forget:
		if f.ask("DEL", keyName(x.Key)) != nil {
			r.Key = keyName(x.Key)
		}
	}
}

// down closes all connections and rejects new ones for a time.
func (f *fleet) down(span time.Duration) {
	for _, p := range f.processes {
		p.network.refuse(span)
		p.network.each(func(l *link) { l.cut(0) })
	}
	f.ask("SCRIPT", "FLUSH")
}
