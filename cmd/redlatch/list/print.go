package list

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
)

// page is how many rows are sorted, and kept, at most.
const page = 100_000

// printer prints locks: for programs as they come, and for people in sorted pages.
type printer struct {
	out     io.Writer
	json    *json.Encoder // nil for people
	look    output.Look
	page    int
	sorted  bool // they come in order
	rows    []row
	printed int
	tally   tally
}

func (l *lister) printer() *printer {
	p := &printer{out: l.out, look: output.LookOf(l.out), page: page, sorted: l.collects()}
	if l.json {
		p.json = json.NewEncoder(l.out)
		p.json.SetEscapeHTML(false)
	}
	return p
}

func (t *printer) add(l *inspect.Lock) error {
	switch {
	case t.json == nil:
		t.tally.add(l)
		t.keep(rowOf(l))
		return nil
	case l.Number != nil:
		return t.json.Encode(l.Shown())
	}
	return t.json.Encode(listedOf(l))
}

func (t *printer) keep(r row) {
	t.rows = append(t.rows, r)
	if len(t.rows) == t.page {
		t.flush()
	}
}

// flush prints what is kept.
func (t *printer) flush() {
	if len(t.rows) == 0 {
		return
	}
	if t.printed == 0 {
		fmt.Fprintln(t.out, heading(t.look))
	}
	if !t.sorted {
		slices.SortFunc(t.rows, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	}
	for i := range t.rows {
		for _, line := range t.rows[i].lines(t.look) {
			fmt.Fprintln(t.out, line)
		}
	}
	t.printed += len(t.rows)
	t.rows = t.rows[:0]
}

// end prints how many locks there are, of which some or all were printed.
func (t *printer) end(total int) {
	if t.json != nil {
		return // programs count lines
	}
	said := t.tally.of(total)
	if !t.sorted && t.printed > t.page {
		said += fmt.Sprintf(", sorted in pages of %d: --sort name sorts all", t.page)
	}
	fmt.Fprintln(t.out, said)
}

// tally counts what is shown.
type tally struct{ locks, numbers, semaphores int }

func (t *tally) add(l *inspect.Lock) {
	if l.Number != nil {
		t.numbers++
		if l.Kind == inspect.Semaphore {
			t.semaphores++
		}
		return
	}
	t.locks++
}

// of says how many there are, of which these are shown.
func (t *tally) of(total int) string {
	shown, what := t.locks+t.numbers, "lock"
	switch {
	case t.numbers > 0 && t.locks > 0:
		what = "locks and semaphore"
	case t.semaphores < t.numbers:
		what = "number"
	case t.semaphores > 0:
		what = "semaphore"
	}
	of := ""
	if shown < total {
		of = fmt.Sprintf("%d of ", shown)
	}
	if total != 1 {
		what += "s"
	}
	return fmt.Sprintf("%s%d %s", of, total, what)
}
