package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// Case is one kind of work, measured at several sizes.
type Case struct {
	ID, Title, Level string
	Levels           []int
	Place            host.Placement
	Fits             func(c contest.Contestant) bool
	// Figures are the columns of the table. Contestants are compared by the first one.
	Figures []Figure
	// Rounds is the maximum number of rounds; 0 means no limit.
	Rounds int
	// Processes is the number of processes, each with Level goroutines; 0 means 1.
	Processes int
	RoundTrip time.Duration
	// Mixed replaces half of the processes with processes that use Redisson.
	Mixed bool
	// Plot draws the first figure over the levels.
	Plot bool

	spec work.Spec
}

// Figure is a column of a table.
type Figure struct {
	// Name is the key in work.Values, and Title is the title of the column.
	Name, Title string
	// More reports whether larger values are better.
	More bool
}

// Figures of the server or of several processes. Times are in microseconds.
const (
	// Requests is the number of commands per operation, and RequestRate the number per second.
	Requests    = "requests"
	RequestRate = "request_rate"
	// RedisCPU and Busy are times per operation. RedisLoad is a percentage of one processor.
	RedisCPU  = "redis_cpu"
	Busy      = "redis_busy"
	RedisLoad = "redis_load"
	// Most and Least are the largest and smallest shares of a process, in percent.
	Most  = "most"
	Least = "least"
	// Ours is the combined share of Redlatch's processes, in percent.
	Ours = "ours"
)

var (
	rate       = Figure{work.Rate, "per second", true}
	p50        = Figure{work.P50, "p50 µs", false}
	p99        = Figure{work.P99, "p99 µs", false}
	longest    = Figure{work.Longest, "max µs", false}
	requests   = Figure{Requests, "requests each", false}
	redisCPU   = Figure{RedisCPU, "Redis CPU µs each", false}
	clientCPU  = Figure{work.CPU, "client CPU µs each", false}
	allocs     = Figure{work.Allocs, "allocations each", false}
	most       = Figure{Most, "most of a process %", false}
	least      = Figure{Least, "least of a process %", true}
	perSecond  = Figure{RequestRate, "commands/s", false}
	clientLoad = Figure{work.CPU, "client CPU µs/s each", false}
)

func of(kind contest.Kind) func(contest.Contestant) bool {
	return func(c contest.Contestant) bool { return c.Kind == kind }
}

func plain(c contest.Contestant) bool    { return c.Kind == contest.Plain && c.Name != "raw-pool" }
func waits(c contest.Contestant) bool    { return c.Kind == contest.Plain && c.Waits }
func redlatch(c contest.Contestant) bool { return c.Kind == contest.Plain && c.Role == contest.Own }
func single(c contest.Contestant) bool {
	return c.Open != nil && (c.Kind == contest.Plain || c.Kind == contest.Async)
}

// renews excludes clients that poll: they hand a lock over, and wait, by their poll interval.
func renews(c contest.Contestant) bool { return c.Kind == contest.Plain && c.Renews }

// Cases returns all cases: what docs/performance.md quotes.
func Cases() []Case {
	pairs := Case{
		ID: "a", Title: "Lock and unlock, a key for each goroutine", Level: "goroutines",
		Levels: []int{1, 8, 64, 512}, Place: host.Apart, Fits: plain, Plot: true,
		Figures: []Figure{rate, p50, p99, allocs, clientCPU, redisCPU, requests},
		spec:    work.Spec{Kind: work.Pairs, Warmup: 200, Duration: 600},
	}
	unpinned := pairs
	unpinned.ID, unpinned.Levels, unpinned.Place, unpinned.Plot = "a-unpinned", []int{1, 64}, host.Free, false
	return slices.Concat([]Case{pairs, unpinned}, distant(), contended(), restful(), others())
}

func distant() (all []Case) {
	for _, trip := range []int{50, 200, 500} {
		c := Case{
			ID:    fmt.Sprintf("j-%d", trip),
			Title: fmt.Sprintf("Lock and unlock, a key for each goroutine, with %dµs more for each round trip", trip),
			Level: "goroutines", Levels: []int{4}, Place: host.Apart, Fits: single,
			RoundTrip: time.Duration(trip) * time.Microsecond,
			Figures:   []Figure{rate, p50, p99, clientCPU, requests},
			spec:      work.Spec{Kind: work.Pairs, Warmup: 200, Duration: 600},
		}
		if trip == 500 {
			c.Levels = []int{1, 4}
		}
		all = append(all, c)
	}
	return all
}

func contended() []Case {
	return []Case{
		{
			ID: "b", Title: "One key, one process", Level: "goroutines",
			Levels: []int{128}, Place: host.Apart, Fits: waits,
			Figures: []Figure{rate, p50, p99, longest, requests, {work.Luckiest, "luckiest ×", false}, {work.Unluckiest, "unluckiest ×", true}},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 1500},
		},
		{
			ID: "c", Title: "One key, eight processes", Level: "goroutines of each", Processes: 8,
			Levels: []int{16}, Place: host.Apart, Fits: waits,
			Figures: []Figure{rate, p50, p99, longest, requests, most, least},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 2000},
		},
		{
			ID: "c-mixed", Title: "One key, two processes of Redlatch and two of Redisson", Level: "goroutines or threads of each",
			Processes: 4, Mixed: true, Levels: []int{16}, Place: host.Apart, Fits: redlatch,
			Figures: []Figure{rate, p50, p99, longest, {Ours, "Redlatch's share %", true}, most, least},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 2000},
		},
		{
			ID: "d", Title: "Wake-up: from the unlock to the other's return", Level: "waiters",
			Levels: []int{1}, Place: host.Apart, Fits: renews,
			Figures: []Figure{p50, p99, longest, {work.Whole, "p50 from the call µs", false}, requests, redisCPU},
			spec:    work.Spec{Kind: work.Wakeup, Warmup: 300, Duration: 1500},
		},
	}
}

func restful() []Case {
	held := []Figure{
		perSecond, {work.Heap, "heap bytes each", false}, clientLoad, {RedisLoad, "Redis CPU %", false},
		{work.Oldest, "latest renewal s", false}, {work.Gone, "gone", false},
	}
	return []Case{
		{
			ID: "e", Title: "Waiters for one lock that stays held", Level: "waiters", Rounds: 1,
			Levels: []int{1000}, Place: host.Apart, Fits: renews,
			Figures: []Figure{
				perSecond, {work.Heap, "heap bytes each", false}, {work.Stack, "stack bytes each", false},
				{work.Goroutines, "goroutines each", false}, {work.Connections, "connections", false}, clientLoad,
				{RedisLoad, "Redis CPU %", false},
			},
			spec: work.Spec{Kind: work.Idle, Warmup: 2000, Duration: 11000},
		},
		{
			ID: "f", Title: "Locks that are held and renewed", Level: "locks", Rounds: 1,
			Levels: []int{100000}, Place: host.Apart, Fits: renews,
			Figures: held,
			spec:    work.Spec{Kind: work.Watchdog, Warmup: 11000, Duration: 21000},
		},
		{
			ID: "f-million", Title: "A million locks that are held and renewed", Level: "locks", Rounds: 1,
			Levels: []int{1000000}, Place: host.Apart, Fits: redlatch,
			Figures: held,
			spec:    work.Spec{Kind: work.Watchdog, Warmup: 11000, Duration: 21000},
		},
	}
}

func others() []Case {
	all := []Case{
		{
			ID: "g", Title: "One fair lock, one process", Level: "queued",
			Levels: []int{10, 100, 1000}, Fits: of(contest.Fair), Plot: true,
			Figures: []Figure{rate, p50, p99, longest, requests, {Busy, "Redis busy µs each", false}, redisCPU},
			spec:    work.Spec{Kind: work.Turns, Warmup: 1000, Duration: 2000},
		},
		{
			ID: "h", Title: "One read/write lock, one process: readers",
			Levels: []int{8, 64}, Fits: of(contest.ReadWrite),
			spec: work.Spec{Kind: work.Turns, Reads: 100, Warmup: 500, Duration: 1500},
		},
		{
			ID: "i", Title: "One read/write lock, one process: nine of ten acquisitions read",
			Levels: []int{64}, Fits: of(contest.ReadWrite),
			spec: work.Spec{Kind: work.Turns, Reads: 90, Warmup: 500, Duration: 1500},
		},
		{
			ID: "k", Title: "One semaphore, eight permits with ids, one process",
			Levels: []int{8, 64}, Fits: of(contest.Permits),
			spec: work.Spec{Kind: work.Turns, Permits: 8, Warmup: 500, Duration: 1500},
		},
		{
			ID: "l", Title: "One semaphore that counts, eight permits, one process",
			Levels: []int{8, 64}, Fits: of(contest.Counter),
			spec: work.Spec{Kind: work.Turns, Permits: 8, Warmup: 500, Duration: 1500},
		},
	}
	for i := range all {
		c := &all[i]
		c.Place, c.Level = host.Apart, cmp.Or(c.Level, "goroutines")
		if c.Figures == nil {
			c.Figures = []Figure{rate, p50, p99, longest, requests, clientCPU, redisCPU}
		}
	}
	return all
}

// QuickCase is a case that compares two builds of the same contestant.
type QuickCase struct {
	Case
	Contestant string
}

// QuickCases returns short cases for each way to acquire a lock.
func QuickCases() []QuickCase {
	place := host.Apart
	if !place.Possible() {
		place = host.Free
	}
	everybody := func(contest.Contestant) bool { return true }
	quick := func(who, id, title string, levels []int, figures []Figure, spec work.Spec) QuickCase {
		return QuickCase{Contestant: who, Case: Case{
			ID: id, Title: title, Level: "size", Levels: levels, Place: place, Fits: everybody,
			Figures: figures, spec: spec,
		}}
	}
	pairs := work.Spec{Kind: work.Pairs, Warmup: 100, Duration: 250}
	turns := work.Spec{Kind: work.Turns, Warmup: 150, Duration: 400}
	own := []Figure{rate, p50, p99, allocs, clientCPU, redisCPU, requests}
	same := []Figure{rate, p50, p99, allocs, requests}
	far := quick("redlatch", "j-500", "own keys, 0.5 ms away", []int{1, 8, 32}, own, pairs)
	far.RoundTrip = 500 * time.Microsecond
	return []QuickCase{
		quick("redlatch", "a", "own keys", []int{1, 64, 512}, own, pairs),
		far,
		quick("redlatch", "b", "one key", []int{16, 128}, same, turns),
		quick("redlatch", "d", "wake-up", []int{1}, []Figure{p50, p99, requests},
			work.Spec{Kind: work.Wakeup, Warmup: 100, Duration: 400}),
		quick("redlatch-fair", "a", "own keys", []int{64}, own, pairs),
		quick("redlatch-fair", "g", "one key", []int{100}, same, turns),
	}
}
