package fleet

import (
	"time"

	"pgregory.net/rapid"
)

// ms is a number of milliseconds: plans are read and written by people.
type ms int64

func (m ms) d() time.Duration { return time.Duration(m) * time.Millisecond }

// plan is all that is decided about one fleet. It is data: a plan that found a bug is kept as
// JSON, and means the same after the generator has changed.
type plan struct {
	// Seed makes what is too fine to be planned: the jitter of every packet.
	Seed    uint64
	Keys    []key
	Clients []client
	Faults  []fault `json:",omitempty"`
}

// key is a lock.
type key struct {
	Fair, Fenced bool `json:",omitempty"`
	// Lease is what it is taken for.
	Lease ms
}

// client stands for a process.
type client struct {
	// Latency is what a packet takes, in one direction.
	Latency ms
	// Ahead is how far its clock is ahead of the others'. It uses the server's time, and is
	// told a time that is so much later.
	Ahead ms `json:",omitempty"`
	// Callers are what its goroutines do, one step after the other.
	Callers [][]step
}

// step is one time with a lock.
type step struct {
	// Rest comes first, then the call.
	Rest ms
	Key  int
	Call call
	// Limit bounds the wait of a call that has one.
	Limit ms `json:",omitempty"`
	Terms terms
	// Work is how long it stays inside, Inner how often it enters again by its proof.
	Work  ms
	Inner int `json:",omitempty"`
	Leave leave
}

// call is how a lock is asked for.
type call string

const (
	callLock   call = "lock"   // without a bound
	callWait   call = "wait"   // WithWait
	callCancel call = "cancel" // its context ends
	callTry    call = "try"
	callResume call = "resume" // what another caller has handed over, else lock
)

// terms are what it is taken for.
type terms string

const (
	termsRenewed terms = "renewed"
	termsFixed   terms = "fixed"
	termsMaxHold terms = "max-hold"
)

// leave is how a hold is given up.
type leave string

const (
	leaveUnlock   leave = "unlock"
	leaveExpire   leave = "let-expire"
	leaveHandOver leave = "hand-over"
)

// fault is something that goes wrong At a moment, and lasts For some time where it lasts.
type fault struct {
	Kind   faultKind
	At     ms
	For    ms `json:",omitempty"`
	Client int
	Key    int `json:",omitempty"`
}

// often makes a value come as often as it is repeated.
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

// Generators. What comes first is what rapid shrinks to.
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
			// A place with a short wait, behind others with long ones, can be overdue at once:
			// Redisson's rule. It is asked for anew with a heartbeat, which is not prompt.
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

// plans are all fleets. A quarter of them has no faults: there every bound is tight.
var plans = rapid.Custom(func(t *rapid.T) plan {
	p := plan{Seed: rapid.Uint64Max(1<<32).Draw(t, "seed"), Keys: rapid.SliceOfN(genKey, 1, 3).Draw(t, "keys")}
	p.Clients = rapid.SliceOfN(genClient(p.Keys), 1, 5).Draw(t, "clients")
	if most := rapid.SampledFrom([]int{0, 2, 5, 10}).Draw(t, "most"); most > 0 {
		p.Faults = rapid.SliceOfN(genFault(len(p.Clients), len(p.Keys)), 1, most).Draw(t, "faults")
	}
	return p
})
