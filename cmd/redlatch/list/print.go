package list

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/output"
)

// printer prints locks.
type printer interface {
	add(l *listing.Lock) error
	// flush prints what is kept.
	flush()
	// end prints how many locks there are, of which some or all were printed.
	end(total int)
}

// printer returns what prints locks as the flags say. The bar is cleared before.
func (l *lister) printer(bar *bar) printer {
	if l.json {
		enc := json.NewEncoder(l.out)
		enc.SetEscapeHTML(false)
		return &lines{enc: enc, before: bar.clear}
	}
	return &table{out: l.out, look: lookOf(l.out), page: page, sorted: l.collects(), flushing: bar.clear}
}

// lines prints locks for programs.
type lines struct {
	enc    *json.Encoder
	before func()
}

func (p *lines) add(l *listing.Lock) error {
	p.before()
	return p.enc.Encode(listedOf(l))
}

func (*lines) flush() {} // nothing is kept

func (*lines) end(int) {} // programs count lines

// page is how many rows are sorted, and kept, at most.
const page = 100_000

// table writes rows for people, in sorted pages.
type table struct {
	out      io.Writer
	look     output.Look
	page     int
	sorted   bool   // they come in order
	flushing func() // before something is written
	rows     []row
	printed  int
}

func (t *table) add(l *listing.Lock) error {
	t.keep(rowOf(l))
	return nil
}

func (t *table) keep(r row) {
	t.rows = append(t.rows, r)
	if len(t.rows) == t.page {
		t.flush()
	}
}

func (t *table) flush() {
	if len(t.rows) == 0 {
		return
	}
	t.flushing()
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

func (t *table) end(total int) {
	said := countOf(t.printed, total)
	if !t.sorted && t.printed > t.page {
		said += fmt.Sprintf(", sorted in pages of %d: --sort name sorts all", t.page)
	}
	fmt.Fprintln(t.out, said)
}

// countOf says how many locks there are, and how many of them are shown.
func countOf(shown, total int) string {
	of := ""
	if shown < total {
		of = fmt.Sprintf("%d of ", shown)
	}
	if total == 1 {
		return of + "1 lock"
	}
	return fmt.Sprintf("%s%d locks", of, total)
}
