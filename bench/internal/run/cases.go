package run

import (
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
	Places           []host.Placement
	Fits             func(c contest.Contestant) bool
	// Figures are the columns of the table. Contestants are compared by the first one.
	Figures []Figure
	// Rounds is the maximum number of rounds; 0 means no limit.
	Rounds int
	// Processes is the number of processes, each with Level goroutines; 0 means 1.
	Processes int
	RoundTrip time.Duration
	// Masters is the number of masters for cluster contestants; 0 means no cluster.
	Masters int
	// Mixed replaces half of the processes with processes that use Redisson.
	Mixed bool
	Log   bool

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

var (
	everywhere = []host.Placement{host.Apart, host.Free}
	apart      = []host.Placement{host.Apart}
)

func of(kind contest.Kind) func(contest.Contestant) bool {
	return func(c contest.Contestant) bool { return c.Kind == kind }
}

func locks(c contest.Contestant) bool {
	return c.Kind == contest.Plain || c.Kind == contest.Fair && c.Role == contest.Own
}
func waits(c contest.Contestant) bool    { return c.Waits && locks(c) }
func renews(c contest.Contestant) bool   { return c.Renews && c.Kind == contest.Plain }
func redlatch(c contest.Contestant) bool { return c.Role == contest.Own && c.Kind == contest.Plain }
func sharded(c contest.Contestant) bool  { return redlatch(c) || c.Kind == contest.Cluster }
func single(c contest.Contestant) bool {
	return c.Open != nil && (c.Kind == contest.Plain || c.Kind == contest.Async)
}

// Cases returns all cases.
func Cases() []Case {
	return append([]Case{
		{
			ID: "a", Title: "Lock and unlock, a key for each goroutine", Level: "goroutines",
			Levels: []int{1, 8, 64, 512, 4096}, Places: everywhere, Fits: locks, Log: true,
			Figures: []Figure{rate, p50, p99, allocs, clientCPU, redisCPU, requests},
			spec:    work.Spec{Kind: work.Pairs, Warmup: 200, Duration: 600},
		},
		{
			ID: "b", Title: "One key, one process", Level: "goroutines",
			Levels: []int{1, 2, 16, 128, 1000, 10000}, Places: apart, Fits: waits, Log: true,
			Figures: []Figure{rate, p50, p99, longest, requests, {work.Luckiest, "luckiest ×", false}, {work.Unluckiest, "unluckiest ×", true}},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 1500},
		},
		{
			ID: "c", Title: "One key, eight processes", Level: "goroutines of each", Processes: 8,
			Levels: []int{16}, Places: apart, Fits: waits,
			Figures: []Figure{rate, p50, p99, longest, requests, most, least},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 2000},
		},
		{
			ID: "c-mixed", Title: "One key, two processes of Redlatch and two of Redisson", Level: "goroutines or threads of each",
			Processes: 4, Mixed: true, Levels: []int{16}, Places: apart, Fits: redlatch,
			Figures: []Figure{rate, p50, p99, longest, {Ours, "Redlatch's share %", true}, most, least},
			spec:    work.Spec{Kind: work.Turns, Warmup: 500, Duration: 2000},
		},
		{
			ID: "d", Title: "Wake-up: from the unlock to the other's return", Level: "waiters",
			Levels: []int{1}, Places: everywhere, Fits: waits,
			Figures: []Figure{p50, p99, longest, {work.Whole, "p50 from the call µs", false}, requests, redisCPU},
			spec:    work.Spec{Kind: work.Wakeup, Warmup: 300, Duration: 1500},
		},
	}, slices.Concat(distant(), restful(), counted())...)
}

func distant() (all []Case) {
	for _, trip := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond} {
		all = append(all, Case{
			ID:    fmt.Sprintf("j-%d", trip.Microseconds()),
			Title: fmt.Sprintf("Lock and unlock, a key for each goroutine, with %v more for each round trip", trip),
			Level: "goroutines", Levels: []int{1, 2, 4}, Places: apart, Fits: single, RoundTrip: trip,
			Figures: []Figure{rate, p50, p99, clientCPU, requests},
			spec:    work.Spec{Kind: work.Pairs, Warmup: 200, Duration: 600},
		})
	}
	return all
}

func counted() (all []Case) {
	for _, c := range []Case{
		{ID: "k", Title: "One semaphore, eight permits with ids, one process", Fits: of(contest.Permits)},
		{ID: "l", Title: "One semaphore that counts, eight permits, one process", Fits: of(contest.Counter)},
	} {
		c.Level, c.Levels, c.Places, c.Log = "goroutines", []int{1, 8, 64}, apart, true
		c.Figures = []Figure{rate, p50, p99, longest, requests, clientCPU, redisCPU}
		c.spec = work.Spec{Kind: work.Turns, Permits: 8, Warmup: 500, Duration: 1500}
		all = append(all, c)
	}
	return all
}

func restful() []Case {
	idle := []Figure{
		perSecond, {work.Heap, "heap bytes each", false}, {work.Stack, "stack bytes each", false},
		{work.Goroutines, "goroutines each", false}, {work.Connections, "connections", false}, clientLoad,
		{RedisLoad, "Redis CPU %", false},
	}
	held := []Figure{
		perSecond, {work.Heap, "heap bytes each", false}, clientLoad, {RedisLoad, "Redis CPU %", false},
		{work.Oldest, "latest renewal s", false}, {work.Gone, "gone", false},
	}
	return []Case{
		{
			ID: "e", Title: "Waiters for one lock that stays held", Level: "waiters", Rounds: 2,
			Levels: []int{1000, 10000}, Places: apart, Fits: waits, Figures: idle,
			spec: work.Spec{Kind: work.Idle, Warmup: 2000, Duration: 11000},
		},
		{
			ID: "e-many", Title: "Waiters for as many locks that stay held", Level: "waiters", Rounds: 2,
			Levels: []int{1000, 10000}, Places: apart, Fits: waits, Figures: idle,
			spec: work.Spec{Kind: work.Idle, Separate: true, Warmup: 2000, Duration: 11000},
		},
		{
			ID: "f", Title: "Locks that are held and renewed", Level: "locks", Rounds: 2,
			Levels: []int{100000}, Places: apart, Fits: renews,
			Figures: held,
			spec:    work.Spec{Kind: work.Watchdog, Warmup: 11000, Duration: 21000},
		},
		{
			ID: "f-million", Title: "A million locks that are held and renewed", Level: "locks", Rounds: 2,
			Levels: []int{1000000}, Places: apart, Fits: redlatch,
			Figures: held,
			spec:    work.Spec{Kind: work.Watchdog, Warmup: 11000, Duration: 21000},
		},
		{
			ID: "m", Title: "Lock and unlock, a key for each goroutine, cluster of three masters", Level: "goroutines",
			Levels: []int{8, 64, 512, 4096}, Places: everywhere, Fits: sharded, Masters: 3, Log: true,
			Figures: []Figure{rate, p50, p99, allocs, clientCPU, redisCPU, requests},
			spec:    work.Spec{Kind: work.Pairs, Warmup: 200, Duration: 600},
		},
		{
			ID: "g", Title: "One fair lock, one process", Level: "queued",
			Levels: []int{10, 100, 1000, 10000}, Places: apart, Fits: of(contest.Fair), Log: true,
			Figures: []Figure{rate, p50, p99, longest, requests, {Busy, "Redis busy µs each", false}, redisCPU},
			spec:    work.Spec{Kind: work.Turns, Warmup: 1000, Duration: 2000},
		},
		{
			ID: "h", Title: "One read/write lock, one process: readers", Level: "goroutines",
			Levels: []int{1, 8, 64, 512}, Places: apart, Fits: of(contest.ReadWrite), Log: true,
			Figures: []Figure{rate, p50, p99, longest, requests, clientCPU, redisCPU},
			spec:    work.Spec{Kind: work.Turns, Reads: 100, Warmup: 500, Duration: 1500},
		},
		{
			ID: "i", Title: "One read/write lock, one process: nine of ten acquisitions read", Level: "goroutines",
			Levels: []int{8, 64}, Places: apart, Fits: of(contest.ReadWrite),
			Figures: []Figure{rate, p50, p99, longest, requests, {work.Unluckiest, "unluckiest ×", true}, redisCPU},
			spec:    work.Spec{Kind: work.Turns, Reads: 90, Warmup: 500, Duration: 1500},
		},
	}
}

// QuickCase is a case that compares two builds of the same contestant.
type QuickCase struct {
	Case
	Contestant string
}

// QuickCases returns short cases for each way to acquire a lock.
func QuickCases() []QuickCase {
	place := []host.Placement{host.Apart}
	if !host.Apart.Possible() {
		place = []host.Placement{host.Free}
	}
	everybody := func(contest.Contestant) bool { return true }
	quick := func(who, id, title string, levels []int, figures []Figure, spec work.Spec) QuickCase {
		return QuickCase{Contestant: who, Case: Case{
			ID: id, Title: title, Level: "size", Levels: levels, Places: place, Fits: everybody,
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
