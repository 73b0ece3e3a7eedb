package stress

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var reports = flag.String("reports", "", "file to which each report is added, a line each; the sums of all in it are printed")

// record adds a report to the file -reports, and prints the table of docs/reliability.md: what all
// reports in it come to.
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

// sums returns a table with a row for each class of reports.
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

// include adds what is in the table of another report of the same class.
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
			twice = fmt.Sprintf("%d times, %.1f s at most, until %.1f s after it forgot", r.Overlaps, seconds(r.OverlapMS), seconds(r.OverlapEndMS))
		}
		fmt.Fprintf(&b, "| %s | %.1f min | %d | %d, %d | %s | %.1f s | %.1f s | %d |\n", r.Class, r.Seconds/60, faults,
			r.Acquisitions, r.Reentries, twice, seconds(r.IdleMS), seconds(r.WithoutGrantMS), r.Findings)
	}
	return b.String()
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func TestReportsOfSeveralRunsAreSummedUpByClass(t *testing.T) {
	t.Parallel()
	got, err := sums([]byte(`{"class":"remembers","seconds":60,"acquisitions":10,"reentries":3,"idle_ms":400,"without_grant_ms":1500,"faults":{"kill":2,"pause":1}}
{"class":"forgets","seconds":30,"acquisitions":5,"overlaps":2,"overlap_ms":3900,"overlap_end_ms":4800,"faults":{"flush":1}}
{"class":"remembers","seconds":120,"acquisitions":20,"idle_ms":300,"without_grant_ms":2500,"faults":{"kill":1}}
`))
	require.NoError(t, err)
	_, rows, _ := strings.Cut(got, "---:|\n")
	require.Equal(t, `| remembers | 3.0 min | 4 | 30, 3 | never | 0.4 s | 2.5 s | 0 |
| forgets | 0.5 min | 1 | 5, 0 | 2 times, 3.9 s at most, until 4.8 s after it forgot | 0.0 s | 0.0 s | 0 |
`, rows)
	_, err = sums([]byte("{"))
	require.Error(t, err)
}
