//go:build linux

package stress

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// report contains the results of a campaign.
type report struct {
	Class        string         `json:"class"`
	Seed         uint64         `json:"seed"`
	Seconds      float64        `json:"seconds"` // of all rounds
	Rounds       int            `json:"rounds"`
	Judged       int            `json:"judged"` // rounds in which the keys that remained on the server were judged
	Acquisitions int            `json:"acquisitions"`
	Reentries    int            `json:"reentries"`
	Resumed      int            `json:"resumed"`
	Marks        int            `json:"marks"`
	Audits       int            `json:"audits"`
	Lost         int            `json:"lost"`
	Outcomes     map[string]int `json:"outcomes"` // of calls, such as "lock: uncertain"
	Faults       map[string]int `json:"faults"`
	Overlaps     int            `json:"overlaps"` // excused because the server lost data
	// OverlapMS is the length of the longest overlap. OverlapEndMS is the longest time from a fault until the end of an
	// overlap.
	OverlapMS    int64 `json:"overlap_ms"`
	OverlapEndMS int64 `json:"overlap_end_ms"`
	// IdleMS is the longest time for which a lock with waiters stayed free in a calm period. WithoutGrantMS is the
	// longest time in which no lock was granted.
	IdleMS         int64 `json:"idle_ms"`
	WithoutGrantMS int64 `json:"without_grant_ms"`
	// Stalls is the number of stalls that processes noticed, whether they were stopped or not. StallMS is the longest.
	Stalls  int   `json:"stalls"`
	StallMS int64 `json:"stall_ms"`
	// Stocks is the number of times that the permits of a semaphore were counted. Missing is the number of permits that
	// Redisson clients had lost at rest.
	Stocks   int `json:"stocks"`
	Missing  int `json:"missing"`
	Findings int `json:"findings"`
}

// add adds the figures of a round.
func (r *report) add(s *history.Story, l history.Limits) {
	r.Rounds++
	r.Marks += len(s.Marks)
	r.Audits += len(s.Audits)
	r.Stocks += len(s.Stocks)
	var grants []history.Time
	for _, h := range s.Holds {
		grants = append(grants, h.From)
		switch {
		case h.Outer != "":
			r.Reentries++
		case s.Calls[h.ID].Op == "resume":
			r.Resumed++
		default:
			r.Acquisitions++
		}
		if h.Cause == "lost" {
			r.Lost++
		}
	}
	for _, c := range s.Calls {
		outcome := c.Err
		switch {
		case c.Returned == 0:
			outcome = "killed"
		case outcome == "":
			outcome = "ok"
		}
		r.Outcomes[c.Op+": "+outcome]++
	}
	pairs := map[string]bool{} // count nested holds as one holder
	for _, o := range s.Overlaps() {
		if o.Excused {
			pairs[o.First.Owner+" "+o.Second.Owner] = true
			r.OverlapMS = max(r.OverlapMS, (o.Span.To - o.Span.From).Milliseconds())
			r.OverlapEndMS = max(r.OverlapEndMS, o.After.Milliseconds())
		}
	}
	r.Overlaps += len(pairs)
	r.IdleMS = max(r.IdleMS, s.LongestIdle(l.Aftermath).Calm.Milliseconds())
	for _, stall := range s.Stalls {
		r.Stalls++
		r.StallMS = max(r.StallMS, (stall.To - stall.From).Milliseconds())
	}
	slices.Sort(grants)
	for i := 1; i < len(grants); i++ {
		r.WithoutGrantMS = max(r.WithoutGrantMS, (grants[i] - grants[i-1]).Milliseconds())
	}
}

// print writes the report as text and as one line of JSON.
func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { _, _ = fmt.Fprintf(t, "%s\t%v\n", name, value) }
	row("class", r.Class)
	row("seed", r.Seed)
	row("time under faults", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	row("rounds", fmt.Sprintf("%d, %d of them with leftovers on the server judged", r.Rounds, r.Judged))
	row("acquisitions", r.Acquisitions)
	row("re-entries", r.Reentries)
	row("resumed", r.Resumed)
	row("marks, audits", fmt.Sprint(r.Marks, ", ", r.Audits))
	if r.Stocks > 0 {
		row("semaphores counted", fmt.Sprintf("%d times; permits missing at rest %d", r.Stocks, r.Missing))
	}
	row("lost holds", r.Lost)
	row("overlaps", fmt.Sprintf("%d after the server lost data, the longest %d ms, the last one ended %d ms after the fault", r.Overlaps, r.OverlapMS, r.OverlapEndMS))
	row("free with waiters", fmt.Sprint(r.IdleMS, " ms"))
	row("longest without a grant", fmt.Sprint(r.WithoutGrantMS, " ms"))
	row("process stalls", fmt.Sprintf("%d times, the longest %d ms", r.Stalls, r.StallMS))
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		row("fault: "+name, r.Faults[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Outcomes)) {
		row(name, r.Outcomes[name])
	}
	row("findings", r.Findings)
	if err := t.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}
