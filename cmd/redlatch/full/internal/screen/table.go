package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type order int

const (
	byTrouble order = iota
	byName
	byHeld
	byWait
	byLease
	byHolder
	orders int = iota
)

func (o order) String() string {
	return [...]string{"trouble", "name", "held", "wait", "lease", "holder"}[o]
}

func (o order) compare(a, b board.Entry) int {
	name := board.CompareNames(a.Name, b.Name)
	switch o {
	case byTrouble:
		return board.ByTrouble(a, b)
	case byHeld:
		return board.ByAge(a, b)
	case byWait:
		return cmp.Or(cmp.Compare(b.Waiters(), a.Waiters()), name)
	case byLease:
		expires := 0
		if leaseRank(a) == 0 {
			expires = a.At.Add(a.TTL).Compare(b.At.Add(b.TTL))
		}
		return cmp.Or(leaseRank(a)-leaseRank(b), expires, name)
	case byHolder:
		return cmp.Or(strings.Compare(holderKey(&a), holderKey(&b)), name)
	}
	return name
}

// leaseRank puts holds without a lease after those with one, and free locks and semaphores last.
func leaseRank(e board.Entry) int {
	switch {
	case !e.IsHeld() || e.Number != nil:
		return 2
	case e.TTL < 0:
		return 1
	}
	return 0
}

func holderKey(e *board.Entry) string {
	if len(e.Holders) == 0 {
		return "\U0010ffff" // free locks last
	}
	return cmp.Or(e.Holders[0].Label, inspect.ShortOwner(e.Holders[0].Owner))
}

// table selects rows of the last scan.
type table struct {
	order   order
	filter  string
	typing  bool
	changed time.Time // when order or filter changed

	all    *board.Locks // nil before the first scan
	rows   []*board.Entry
	cursor int
	first  int    // the row on top
	name   string // the lock below the cursor, "" to stay at the top
}

func (t *table) set(all *board.Locks) {
	t.all = all
	t.choose()
	if t.filter == "" && t.name != "" && len(t.rows) > 0 && t.rows[t.cursor].Name != t.name {
		t.move(0) // the lock is gone: follow its successor
	}
}

// choose fills the rows. The cursor stays on its lock.
func (t *table) choose() {
	t.rows = nil
	if t.all == nil {
		return
	}
	matches := board.Matches(t.filter)
	for i := range t.all.Entries {
		if e := &t.all.Entries[i]; matches(e.Name) {
			t.rows = append(t.rows, e)
		}
	}
	slices.SortFunc(t.rows, func(a, b *board.Entry) int { return t.order.compare(*a, *b) })
	if t.name != "" {
		if i := slices.IndexFunc(t.rows, func(e *board.Entry) bool { return e.Name == t.name }); i >= 0 {
			t.cursor = i
		}
	}
	t.cursor = min(t.cursor, max(0, len(t.rows)-1))
}

func (t *table) move(by int) {
	t.cursor = min(max(t.cursor+by, 0), max(0, len(t.rows)-1))
	if t.name = ""; t.cursor > 0 {
		t.name = t.rows[t.cursor].Name
	}
}

// preferred returns the order in which a scan keeps locks: matching locks come first.
func (t *table) preferred() func(a, b board.Entry) int {
	by, filter := t.order, t.filter
	if filter == "" {
		return by.compare
	}
	matches := board.Matches(filter)
	misses := func(e board.Entry) int {
		if matches(e.Name) {
			return 0
		}
		return 1
	}
	return func(a, b board.Entry) int { return cmp.Or(misses(a)-misses(b), by.compare(a, b)) }
}

// column is a column of the table. Its text is right-aligned if right is set.
type column struct {
	title string
	order order
	width int
	right bool
	text  func(e *board.Entry, moment time.Time) string
}

const (
	gap                   = 2
	wide, wider           = 110, 140
	leastName             = 16
	heldWidth, waitWidth  = 8, 6
	leaseWidth, kindWidth = 7, 11
	troubleWidth          = 31
)

// columns returns the table's columns. Names and holders share the width that the others leave. On
// narrow screens, names have the width of other columns.
func columns(width int) []column {
	held := column{"HELD", byHeld, heldWidth, true, heldText}
	wait := column{"WAIT", byWait, waitWidth, true, func(e *board.Entry, _ time.Time) string { return waitText(e) }}
	lease := column{"LEASE", byLease, leaseWidth, true, leaseText}
	fixed := []column{held, wait, lease}
	if width >= wide {
		kind := column{"KIND", -1, kindWidth, false, func(e *board.Entry, _ time.Time) string { return string(e.Kind) }}
		fixed = slices.Concat([]column{kind}, fixed)
	}
	if width >= wider {
		trouble := column{"TROUBLE", byTrouble, troubleWidth, false, func(e *board.Entry, _ time.Time) string { return e.Trouble }}
		fixed = append(fixed, trouble)
	}
	rest := width - gap
	for _, c := range fixed {
		rest -= gap + c.width
	}
	name := column{"NAME", byName, (rest - gap) * 55 / 100, false, func(e *board.Entry, _ time.Time) string { return board.NameText(e.Name) }}
	who := rest - gap - name.width
	holder := column{"HOLDER", byHolder, who, false, func(e *board.Entry, _ time.Time) string { return holderText(e, who) }}
	if name.width >= leastName {
		return slices.Concat([]column{name}, fixed, []column{holder})
	}
	for _, c := range []column{wait, lease} {
		if rest < leastName {
			fixed = slices.DeleteFunc(fixed, func(f column) bool { return f.order == c.order })
			rest += gap + c.width
		}
	}
	name.width = max(1, rest)
	return slices.Concat([]column{name}, fixed)
}

func heldText(e *board.Entry, moment time.Time) string {
	if e.Since.IsZero() {
		return ""
	}
	text := cli.Lease(whole(moment.Sub(e.Since)))
	if !e.Exact {
		text = ">" + text
	}
	return text
}

func leaseText(e *board.Entry, moment time.Time) string {
	switch {
	case !e.IsHeld() || e.Number != nil: // each permit has its own
		return ""
	case e.TTL < 0:
		return "none"
	}
	return cli.Lease(whole(max(0, e.TTL-moment.Sub(e.At))))
}

// whole drops fractions, because they would only flicker.
func whole(d time.Duration) time.Duration { return d.Truncate(time.Second) }

func waitText(e *board.Entry) string {
	switch n := e.Waiters(); {
	case n > 0:
		return strconv.FormatInt(n, 10)
	case e.Uncounted:
		return "?"
	}
	return ""
}

// holderText leaves out the owner, and then parts of the label, if they do not fit into the columns.
func holderText(e *board.Entry, columns int) string {
	switch {
	case e.Number != nil:
		return board.NumberText(e.Kind, e.Number)
	case len(e.Holders) == 0:
		return "free"
	}
	first, n := &e.Holders[0], ""
	switch {
	case e.More:
		n = fmt.Sprintf("(%d+) ", len(e.Holders))
	case len(e.Holders) > 1:
		n = fmt.Sprintf("(%d) ", len(e.Holders))
	}
	text := n + board.OwnerText(first.Owner, first.Label)
	if first.Label == "" || sanitize.Width(text) <= columns {
		return text
	}
	return n + shortLabel(board.LabelText(first.Label), columns-len(n))
}

// shortLabel keeps the host and the process ID of a label of the form PROGRAM@HOST pid N.
func shortLabel(label string, columns int) string {
	at, pid := strings.LastIndex(label, "@"), strings.LastIndex(label, " pid ")
	if at < 0 || pid < at || sanitize.Width(label) <= columns {
		return label
	}
	program, host, number := label[:at], label[at+1:pid], label[pid:]
	if room := columns - sanitize.Width(label[at:]); room >= len("p..") {
		return sanitize.Truncate(program, room) + label[at:]
	}
	room := columns - sanitize.Width(number)
	if sanitize.Width(host) > room && !strings.Contains(host, ".") { // the end of a pod's name differs
		return ".." + tail(host, room-len("..")) + number
	}
	return sanitize.Truncate(host, room) + number
}
