package run

import (
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// QuickCase is a case that two builds of one contestant are compared on.
type QuickCase struct {
	Case
	// Contestant is its name.
	Contestant string
}

// QuickCases returns the cases of a quick comparison: for each way that a lock is taken one
// or two sizes, all of them short. Allocations and requests hardly vary from round to
// round: they show what times cannot.
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
