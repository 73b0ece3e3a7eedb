package redlatchui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

const (
	// rows is how many locks a page has.
	rows = 100
	// longestQuery is how much of a filter is looked at.
	longestQuery = 1024
	// patience bounds the wait for the first scan, or the first look at a lock.
	patience = 10 * time.Second
)

const (
	// numbers chooses what holds a number, in place of the locks.
	numbers = "numbers"
	// byPrefix shows groups of names.
	byPrefix = "prefix"
)

// choice is which locks are shown, by the address.
type choice struct{ Query, Sort, Only, By, page string }

// orders are the ways to sort.
var orders = map[string]func(a, b board.Entry) int{
	"trouble": board.ByTrouble,
	"age":     board.ByAge,
	"name":    func(a, b board.Entry) int { return strings.Compare(a.Name, b.Name) },
	"queue": func(a, b board.Entry) int {
		return cmp.Or(cmp.Compare(b.Waiters(), a.Waiters()), strings.Compare(a.Name, b.Name))
	},
}

// choiceOf reads the address.
func choiceOf(r *http.Request) choice {
	q := r.URL.Query()
	c := choice{Query: q.Get("q"), Sort: q.Get("sort"), Only: q.Get("only"), By: q.Get("by"), page: q.Get("page")}
	c.Query = c.Query[:min(len(c.Query), longestQuery)]
	if orders[c.Sort] == nil {
		c.Sort = "trouble"
	}
	if c.Only != "trouble" && c.Only != "held" && c.Only != numbers {
		c.Only = ""
	}
	if c.By != byPrefix {
		c.By = ""
	}
	return c
}

// link returns the address of a page of these locks.
func (c *choice) link(page int) string {
	q := url.Values{}
	for name, value := range map[string]string{"q": c.Query, "sort": c.Sort, "only": c.Only, "by": c.By} {
		if value != "" && value != "trouble" || name == "only" && value != "" {
			q.Set(name, value)
		}
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	return "?" + q.Encode()
}

// SortLink returns the address of these locks in an order.
func (c *choice) SortLink(order string) string {
	other := *c
	other.Sort = order
	return other.link(1)
}

// of returns those of the locks that are chosen, in order.
func (c *choice) of(all []board.Entry) []board.Entry {
	matches := func(name string) bool { return strings.Contains(name, c.Query) }
	if strings.ContainsAny(c.Query, "*?") { // else a bracket is one of the name
		matches = listing.Match(c.Query)
	}
	var some []board.Entry
	for _, e := range all {
		switch {
		case !matches(e.Name), c.Only == "trouble" && e.Trouble == "", c.Only == "held" && !isHeld(&e):
		default:
			some = append(some, e)
		}
	}
	if c.Sort != "trouble" { // they are in that order
		slices.SortFunc(some, orders[c.Sort])
	}
	return some
}

// locksPage is the page of all locks.
type locksPage struct {
	frame
	choice
	Rows           []lockRow
	Total, Found   int
	Listed         int // rows of all its pages
	InTrouble      int
	First, Last    int
	Previous, Next string
	Groups         []prefixGroup
	ByPrefix       []groupRow
	Circle         bool
	Cut            bool // there are more than were kept
	Unread         string
}

// lockRow is a lock in the table.
type lockRow struct {
	Key, Link, Name, Kind string
	Holder, Next          named
	Library, Others       string
	State                 string // of a number
	Since, Lease          string
	Queue                 string
	Trouble               string
}

// isHeld reports whether a lock is held, or permits of a semaphore are.
func isHeld(e *board.Entry) bool { return len(e.Holders) > 0 || e.Number != nil && e.Number.Taken > 0 }

// locks serves the page of all locks.
func (p *Page) locks(w http.ResponseWriter, r *http.Request) {
	page := locksPage{frame: p.frame("Locks", "events"), choice: choiceOf(r)}
	feed := p.board.Locks
	if page.Section = "locks"; page.Only == numbers {
		page.Stream, feed = "events?about="+numbers, p.board.Numbers
	}
	all, err := current(r.Context(), feed)
	if err != nil {
		p.fail(w, err)
		return
	}
	if all == nil {
		page.Err = "The first scan goes on. This page shows the locks when it has ended."
	} else {
		page.fill(all)
	}
	p.show(w, "locks.html", &page)
}

// fill puts the locks in.
func (page *locksPage) fill(all *board.Locks) {
	now := all.Moment()
	page.Total, page.Cut = all.Total, all.Total > len(all.Entries)
	page.seen(&all.Seen)
	if all.Unread.Keys > 0 {
		page.Unread = fullSentence(sanitize.Message(all.Unread.Text("hashes"))) + " "
	}
	if all.Unread.Away != nil {
		page.Unread += fullSentence(sanitize.Message("Not all masters were looked at: "+all.Unread.Away.Error())) + " "
	}
	if all.Uncounted != "" {
		page.Unread += "How many wait for locks without a queue, for permits and for latches, and which waiters are dead, is not known: " +
			"subscribers cannot be counted. " + fullSentence(all.Uncounted)
	}
	for i := range all.Entries {
		if all.Entries[i].Trouble != "" {
			page.InTrouble++
		}
	}
	page.Circle = len(all.Circles) > 0 && all.Circles[0].Sure
	some := page.of(all.Entries)
	page.Found = len(some)
	page.Groups = page.groupsOf(some)
	for i := range page.Groups {
		page.Groups[i].Key = page.key("group", page.Groups[i].prefix)
	}
	if page.By == byPrefix {
		groups := page.groupRows(some, now)
		from, to := page.part(len(groups))
		page.ByPrefix = groups[from:to]
		for i := range page.ByPrefix {
			page.ByPrefix[i].Key = page.key(page.ByPrefix[i].prefix)
		}
		return
	}
	from, to := page.part(len(some))
	for i := range some[from:to] {
		row := rowOf(&some[from+i], all.At, now)
		row.Key = page.key(some[from+i].Name)
		page.Rows = append(page.Rows, row)
	}
}

// part returns which of so many rows are on the page, and links to the others.
func (page *locksPage) part(found int) (from, to int) {
	page.Listed = found
	last := max(1, (found+rows-1)/rows)
	n, _ := strconv.Atoi(page.page) // 0 for what is no number
	n = min(max(n, 1), last)
	from, to = (n-1)*rows, min(n*rows, found)
	page.First, page.Last = from+1, to
	if n > 1 {
		page.Previous = page.link(n - 1)
	}
	if n < last {
		page.Next = page.link(n + 1)
	}
	return from, to
}

// rowOf makes a row of a lock.
func rowOf(e *board.Entry, at, now time.Time) lockRow {
	row := lockRow{
		Link: lockLink(e.Name), Name: nameText(e.Name), Kind: kindText(e.Kind, e.Mode), Queue: queueText(e),
		Trouble: sentence(e.Trouble),
	}
	if e.Next != "" {
		row.Next = ownerOf(e.Next, e.NextLabel)
	}
	if e.Number != nil {
		row.State = numberText(e.Kind, e.Number)
	}
	if len(e.Holders) == 0 {
		return row
	}
	h := e.Holders[0]
	row.Holder, row.Library = ownerOf(h.Owner, h.Label), inspect.ClientOf(h.Owner).Name()
	row.Since = span(now.Sub(e.Since))
	if !e.Exact {
		row.Since = "at least " + row.Since
	}
	switch n := len(e.Holders) - 1; {
	case e.More:
		row.Others = "and more"
	case n > 0:
		row.Others = fmt.Sprintf("and %d more", n)
	}
	if row.Lease = "none"; e.TTL >= 0 {
		row.Lease = span(e.TTL - now.Sub(at))
	}
	return row
}

// queueText says how many wait: in the queue, or as far as connections that listen hint at it.
func queueText(e *board.Entry) string {
	n := e.Waiters()
	switch {
	case e.Queue > 0:
		return strconv.FormatInt(n, 10)
	case e.Uncounted:
		return "not known"
	case n > 0:
		return fmt.Sprintf("%d listening", n)
	}
	return ""
}

// kindText names a kind of lock.
func kindText(kind listing.Kind, mode string) string {
	switch {
	case kind == listing.ReadWrite && mode != "":
		return "read/write, " + mode
	case kind == listing.ReadWrite:
		return "read/write"
	}
	return string(kind)
}
