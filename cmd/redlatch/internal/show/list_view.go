package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type listed struct {
	inspect.View
	More  bool  `json:"more_holders,omitempty"`
	Queue int64 `json:"queue_length"`
	// NotSubscribed is only set with --dead-waiters.
	NotSubscribed int         `json:"not_subscribed,omitempty"`
	NotLookedAt   int64       `json:"not_looked_at,omitempty"`
	Next          *listedNext `json:"next,omitempty"`
	// Deadlock is a circle of waits that the lock is part of.
	Deadlock inspect.Circle `json:"deadlock,omitempty"`
}

type listedNext struct {
	inspect.Owned
	inspect.Client
	Label string `json:"label,omitempty"`
}

func listedOf(l *inspect.Lock, deadlock inspect.Circle) *listed {
	out := &listed{View: l.View(), More: l.More, Queue: l.Queue, NotSubscribed: l.NotSubscribed, Deadlock: deadlock}
	if l.NotSubscribed > 0 {
		out.NotLookedAt = max(0, l.Queue-inspect.LookedAt)
	}
	if l.Next != "" {
		out.Next = &listedNext{Owned: inspect.OwnedBy(l.Next), Client: inspect.ClientOf(l.Next), Label: l.NextLabel}
	}
	return out
}

type row struct {
	name  string
	lines []string
	cells []string // of -o wide, instead of lines
}

// The columns take one character less than a terminal has.
const (
	nameWidth   = 22
	holderWidth = 28
	cells       = "%-5s  %s %5s %7s %5s"
)

// Tokens are printed on a separate line.
var shortKinds = map[inspect.Kind]string{
	inspect.ReadWrite: "r/w", inspect.Fenced: "plain", inspect.FairFenced: "fair", inspect.Semaphore: "sem", inspect.Counter: "count",
}

func rowOf(w io.Writer, l *inspect.Lock, look cli.Look) row {
	who, entered, lease, queue := "free", "-", "-", "-"
	if l.Number != nil {
		who = numberText(l)
		if l.TTL != redlatch.NoTTL {
			lease = cli.Lease(l.TTL)
		}
	} else if len(l.Holders) > 0 {
		who, entered, lease = holdersOf(l), sanitize.Word(string(l.Holders[0].Count)), cli.Lease(l.TTL)
	}
	if n := waiting(l); n > 0 {
		queue = strconv.FormatInt(n, 10)
	}
	kind := cmp.Or(shortKinds[l.Kind], string(l.Kind))
	shown := strings.TrimRight(fmt.Sprintf(cells, kind, sanitize.Pad(who, holderWidth), entered, lease, queue), " ")
	if isFree(l) {
		shown = look.Paint(cli.Yellow, shown)
	}
	r := row{name: sanitize.Word(l.Name)}
	if sanitize.Width(r.name) > nameWidth {
		r.lines = append(r.lines, r.name, strings.Repeat(" ", nameWidth+2)+shown)
	} else {
		r.lines = append(r.lines, sanitize.Pad(r.name, nameWidth)+"  "+shown)
	}
	if l.Number == nil {
		r.lines = append(r.lines, notesOf(w, l)...)
	}
	return r
}

func isFree(l *inspect.Lock) bool { return l.Number == nil && len(l.Holders) == 0 }

func notesOf(w io.Writer, l *inspect.Lock) []string {
	notes := ""
	if in := inspect.Base64(l.Name); in != "" {
		notes += "  base64 " + in + "\n"
	}
	for i, h := range l.Holders {
		if h.Label != "" && (i > 0 || sanitize.Width(holderText(&h)) > holderWidth) {
			notes += cli.IndentedFor(w, "label", sanitize.Line(h.Label))
		}
	}
	if l.Token > 0 {
		notes += cli.IndentedFor(w, "token", strconv.FormatInt(l.Token, 10))
	}
	if l.HasTwoKinds() {
		notes += cli.IndentedFor(w, "mixed", "two kinds of lock have this name; see redlatch status")
	}
	if l.NotSubscribed > 0 {
		notes += cli.IndentedFor(w, "dead", absentOf(int64(l.NotSubscribed), l.Queue))
	}
	if isFree(l) {
		next := inspect.ShortOwner(l.Next)
		if inspect.Base64(l.Next) != "" {
			next = inspect.Shown(l.Next)
		}
		if l.NextLabel != "" {
			next += ", " + sanitize.Line(l.NextLabel)
		}
		notes += cli.IndentedFor(w, "next", next)
	}
	if notes == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(notes, "\n"), "\n")
}

func numberText(l *inspect.Lock) string {
	n, said := l.Number, strconv.FormatInt(l.Number.Available, 10)
	switch {
	case l.Kind == inspect.Semaphore:
		said = fmt.Sprintf("%d taken, %d available", n.Taken, n.Available)
	case l.Kind == inspect.Latch && n.Available > 0:
		said = fmt.Sprintf("closed, %d to count down", n.Available)
	case l.Kind == inspect.Latch:
		said = "open"
	}
	return sanitize.Truncate(said, holderWidth)
}

func absentOf(absent, queue int64) string {
	waiters, have := "waiters", "have"
	if queue == 1 {
		waiters = "waiter"
	}
	if absent == 1 {
		have = "has"
	}
	of := strconv.FormatInt(queue, 10)
	if queue > inspect.LookedAt {
		of = fmt.Sprintf("the first %d of %d", inspect.LookedAt, queue)
	}
	return fmt.Sprintf("%d of %s %s %s no subscriber", absent, of, waiters, have)
}

func holdersOf(l *inspect.Lock) string {
	others := ""
	switch n := len(l.Holders) - 1; {
	case l.More:
		others = " +..."
	case n > 0:
		others = fmt.Sprintf(" +%d", n)
	}
	return sanitize.Truncate(holderText(&l.Holders[0]), holderWidth-len(others)) + others
}

func holderText(h *inspect.Holder) string {
	if h.Label != "" {
		return sanitize.Line(h.Label)
	}
	return inspect.ShortOwner(h.Owner)
}

func heading(look cli.Look) string {
	return look.Paint(cli.Bold, fmt.Sprintf("%-*s  "+cells, nameWidth, "NAME", "KIND", sanitize.Pad("HOLDER", holderWidth), "COUNT", "LEASE", "QUEUE"))
}

const page = 100_000

type printer struct {
	out     io.Writer
	format  *cli.Output
	look    cli.Look
	page    int
	sorted  bool // the locks arrive in order
	rows    []row
	printed int
	tally   tally

	deadlock func(*inspect.Lock) inspect.Circle
}

func (l *lister) printer() *printer {
	return &printer{deadlock: l.deadlock, out: l.out, format: &l.format, look: cli.LookOf(l.out), page: page, sorted: l.collects()}
}

func (t *printer) add(l *inspect.Lock) error {
	if t.format.Structured() {
		if l.Number != nil {
			return t.format.Item(t.out, l.Shown())
		}
		return t.format.Item(t.out, listedOf(l, t.deadlock(l)))
	}
	t.tally.add(l)
	switch {
	case t.format.Names():
		t.keep(row{name: cli.Name(l.Name), lines: []string{cli.Name(l.Name)}})
	case t.format.Wide() && l.Number != nil:
		t.keep(wideNumber(l.Shown()))
	case t.format.Wide():
		t.keep(wideLock(listedOf(l, t.deadlock(l))))
	default:
		t.keep(rowOf(t.out, l, t.look))
	}
	return nil
}

func (t *printer) keep(r row) {
	t.rows = append(t.rows, r)
	if len(t.rows) == t.page {
		t.flush()
	}
}

func (t *printer) flush() {
	if len(t.rows) == 0 {
		return
	}
	if !t.sorted {
		slices.SortFunc(t.rows, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	}
	headed := t.printed == 0 && !t.format.NoHeaders
	switch {
	case t.format.Wide():
		printWide(t.out, t.look, headed, t.rows)
	case headed && !t.format.Names():
		fmt.Fprintln(t.out, heading(t.look))
	}
	for i := range t.rows {
		if len(t.rows[i].lines) > 0 {
			fmt.Fprintln(t.out, strings.Join(t.rows[i].lines, "\n"))
		}
	}
	t.printed += len(t.rows)
	t.rows = t.rows[:0]
}

func (t *printer) end(total int) {
	if t.format.Structured() || t.format.Names() || t.format.NoHeaders {
		return
	}
	said := t.tally.of(total)
	if !t.sorted && t.printed > t.page {
		said += fmt.Sprintf(", sorted in pages of %d: --sort name sorts all", t.page)
	}
	fmt.Fprintln(t.out, said)
}

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
