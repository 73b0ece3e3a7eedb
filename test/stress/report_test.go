//go:build linux

package stress

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

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

var reports = flag.String("reports", "", "append each report to this file as one line, and print the sums of all its reports")

// record appends a report to the file -reports and prints the sums of all reports in it.
func (r *report) record(w io.Writer) error {
	if *reports == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(*reports, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	text, err := os.ReadFile(*reports)
	if err != nil {
		return err
	}
	table, err := sums(text)
	_, _ = io.WriteString(w, table)
	return err
}

// sums returns a table with one row per class of reports.
func sums(text []byte) (string, error) {
	var classes []*report
	of := map[string]*report{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		r := &report{}
		switch err := d.Decode(r); {
		case errors.Is(err, io.EOF):
			return table(classes), nil
		case err != nil:
			return "", err
		}
		if sum := of[r.Class]; sum != nil {
			sum.include(r)
		} else {
			of[r.Class] = r
			classes = append(classes, r)
		}
	}
}

// include adds the results in another report of the same class.
func (r *report) include(o *report) {
	r.Seconds += o.Seconds
	r.Acquisitions += o.Acquisitions
	r.Reentries += o.Reentries
	r.Overlaps += o.Overlaps
	r.Findings += o.Findings
	r.OverlapMS = max(r.OverlapMS, o.OverlapMS)
	r.OverlapEndMS = max(r.OverlapEndMS, o.OverlapEndMS)
	r.IdleMS = max(r.IdleMS, o.IdleMS)
	r.WithoutGrantMS = max(r.WithoutGrantMS, o.WithoutGrantMS)
	for name, n := range o.Faults {
		r.Faults[name] += n
	}
}

func table(classes []*report) string {
	var b strings.Builder
	b.WriteString("| the server | under faults | faults | acquisitions, re-entries | two at once | free while a caller waited | longest without a grant | findings |\n" +
		"|---|---:|---:|---:|---|---:|---:|---:|\n")
	for _, r := range classes {
		faults := 0
		for _, n := range r.Faults {
			faults += n
		}
		twice := "never"
		if r.Overlaps > 0 {
			twice = fmt.Sprintf("%d times, %.1f s at most, until %.1f s after the data loss", r.Overlaps, seconds(r.OverlapMS), seconds(r.OverlapEndMS))
		}
		fmt.Fprintf(&b, "| %s | %.1f min | %d | %d, %d | %s | %.1f s | %.1f s | %d |\n", r.Class, r.Seconds/60, faults,
			r.Acquisitions, r.Reentries, twice, seconds(r.IdleMS), seconds(r.WithoutGrantMS), r.Findings)
	}
	return b.String()
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func TestSummaryGroupsReportsByClass(t *testing.T) {
	t.Parallel()
	got, err := sums([]byte(`{"class":"remembers","seconds":60,"acquisitions":10,"reentries":3,"idle_ms":400,"without_grant_ms":1500,"faults":{"kill":2,"pause":1}}
{"class":"forgets","seconds":30,"acquisitions":5,"overlaps":2,"overlap_ms":3900,"overlap_end_ms":4800,"faults":{"flush":1}}
{"class":"remembers","seconds":120,"acquisitions":20,"idle_ms":300,"without_grant_ms":2500,"faults":{"kill":1}}
`))
	require.NoError(t, err)
	_, rows, _ := strings.Cut(got, "---:|\n")
	require.Equal(t, `| remembers | 3.0 min | 4 | 30, 3 | never | 0.4 s | 2.5 s | 0 |
| forgets | 0.5 min | 1 | 5, 0 | 2 times, 3.9 s at most, until 4.8 s after the data loss | 0.0 s | 0.0 s | 0 |
`, rows)
	_, err = sums([]byte("{"))
	require.Error(t, err)
}
