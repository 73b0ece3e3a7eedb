package list

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/listing"
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
	return &table{out: l.out, look: cli.LookOf(l.out), page: page, sorted: l.collects(), flushing: bar.clear}
}

// lines prints locks for programs.
type lines struct {
	enc    *json.Encoder
	before func()
}

func (p *lines) add(l *listing.Lock) error {
	p.before()
	if l.Number != nil {
		return p.enc.Encode(listedNumberOf(l))
	}
	return p.enc.Encode(listedOf(l))
}

func (*lines) flush() {} // nothing is kept

func (*lines) end(int) {} // programs count lines

// page is how many rows are sorted, and kept, at most.
const page = 100_000

// table writes rows for people, in sorted pages.
type table struct {
	out      io.Writer
	look     cli.Look
	page     int
	sorted   bool   // they come in order
	flushing func() // before something is written
	rows     []row
	printed  int
	tally    tally
}

func (t *table) add(l *listing.Lock) error {
	t.tally.add(l)
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
	said := t.tally.of(total)
	if !t.sorted && t.printed > t.page {
		said += fmt.Sprintf(", sorted in pages of %d: --sort name sorts all", t.page)
	}
	fmt.Fprintln(t.out, said)
}

// tally counts what is shown.
type tally struct{ locks, numbers, semaphores int }

func (t *tally) add(l *listing.Lock) {
	if l.Number != nil {
		t.numbers++
		if l.Kind == listing.Semaphore {
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
