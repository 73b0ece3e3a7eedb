package redlatchui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	rows         = 100
	chips        = 12
	longestQuery = 1024
	patience     = 10 * time.Second
	numbers      = "numbers"
	byPrefix     = "prefix"
)

type choice struct{ Query, Sort, Only, By, page string }

var orders = map[string]func(a, b board.Entry) int{
	"trouble": board.ByTrouble,
	"age":     board.ByAge,
	"name":    func(a, b board.Entry) int { return board.CompareNames(a.Name, b.Name) },
	"queue": func(a, b board.Entry) int {
		return cmp.Or(cmp.Compare(b.Waiters(), a.Waiters()), board.CompareNames(a.Name, b.Name))
	},
}

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

func (c *choice) of(all []board.Entry) []board.Entry {
	matches := board.Matches(c.Query)
	var some []board.Entry
	for _, e := range all {
		switch {
		case !matches(e.Name), c.Only == "trouble" && e.Trouble == "", c.Only == "held" && !e.IsHeld():
		default:
			some = append(some, e)
		}
	}
	if c.Sort != "trouble" {
		slices.SortFunc(some, orders[c.Sort])
	}
	return some
}

type locksPage struct {
	frame
	choice
	Rows           []board.Entry
	ByPrefix       []group
	Groups         []group
	Total, Found   int
	Listed         int // rows on all pages
	InTrouble      int
	Worst          board.Level // of the troubles
	First, Last    int
	Previous, Next string
	Circle         bool
	Cut            bool // some locks were not kept
	Unread         string
	// Figures is nil before the first scan, and for numbers.
	Figures *figures

	series func(of, name string) *board.Series
}

// group contains the locks whose names begin with Prefix.
type group struct {
	Prefix, Link, query    string
	Trouble                string
	Count, InTrouble, Held int
	Queued                 int64
	Since                  time.Time // when the oldest hold began
	whole                  bool      // the numbers are those of all locks of the group
}

func (p *Page) locks(r *http.Request) (template string, _ any, err error) {
	page := locksPage{frame: p.frame("Locks"), choice: choiceOf(r), series: p.board.Series}
	feed := p.board.Locks
	if page.Section, page.Stream = "locks", "events"; page.Only == numbers {
		page.Stream, feed = "events?about="+numbers, p.board.Numbers
	}
	all, err := current(r, feed)
	if err != nil {
		return "", nil, err
	}
	if all == nil {
		page.Err = "The first scan is in progress. The locks will appear when it finishes."
	} else {
		page.fill(all)
	}
	return "locks.html", &page, nil
}

func (page *locksPage) fill(all *board.Locks) {
	page.Total, page.Cut = all.Total, all.Total > len(all.Entries)
	page.seen(&all.Seen)
	if all.Unread.Keys > 0 {
		page.Unread = fullSentence(sanitize.Message(all.Unread.Text("hashes"))) + " "
	}
	if all.Unread.Away != nil {
		page.Unread += fullSentence(sanitize.Message("Not all masters were scanned: "+all.Unread.Away.Error())) + " "
	}
	if all.Uncounted != "" {
		page.Unread += "Unknown: dead waiters, and the numbers of waiters for permits, latches and locks without a queue: " +
			"subscribers cannot be counted. " + fullSentence(all.Uncounted)
	}
	for i := range all.Entries {
		if all.Entries[i].Trouble != "" {
			page.InTrouble++
			page.Worst = max(page.Worst, board.LevelOf(all.Entries[i].Trouble))
		}
	}
	page.Circle = len(all.Circles) > 0
	some := page.of(all.Entries)
	page.Found = len(some)
	groups := page.groups(some)
	for i := range groups {
		groups[i].count(all, page)
	}
	page.figures(all, groups)
	if page.By == byPrefix {
		page.ByPrefix = part(page, groups)
		return
	}
	page.Rows = part(page, some)
	groups = slices.DeleteFunc(groups, func(g group) bool { return g.Prefix == "" || g.Count == 1 || len(groups) == 1 })
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), board.CompareNames(a.Prefix, b.Prefix))
	})
	page.Groups = top(groups, chips)
}

// figures sets the charts for the only group shown, or for all locks.
func (page *locksPage) figures(all *board.Locks, groups []group) {
	switch {
	case page.Only == numbers:
		return
	case len(groups) == 1 && groups[0].Prefix != "" && groups[0].query == page.Query && groups[0].whole:
		page.Figures = page.GroupFigures(groups[0])
	default:
		page.Figures = figuresOf("All locks", page.series(board.OfAll, ""), all.Held, all.Waiting)
	}
	if page.Figures != nil && !all.CountsChanges() {
		page.Figures.Acquired, page.Figures.Expired = nil, nil
	}
}

// count sets the numbers of a group to those in its charts, which also count locks that were not kept, unless the page
// shows only some of its locks.
func (g *group) count(all *board.Locks, page *locksPage) {
	locks, held, waiters, known := all.Group(g.Prefix)
	if g.whole = known && page.Only == "" && (page.Query == "" || page.Query == g.query); g.whole {
		g.Count, g.Held, g.Queued = locks, held, int64(waiters)
	}
}

// GroupFigures returns nil if there are too many groups, or if the page shows only some of the group's locks.
func (page *locksPage) GroupFigures(g group) *figures {
	if !g.whole {
		return nil
	}
	return figuresOf(board.NameText(g.Prefix), page.series(board.OfGroup, g.Prefix), g.Held, int(g.Queued))
}

// RowFigures returns nil for a lock without activity.
func (page *locksPage) RowFigures(e board.Entry) *figures {
	s := page.series(board.OfRow, e.Name)
	if s == nil {
		return nil
	}
	f, _ := rowFiguresOf(board.NameText(e.Name), s, int(e.Waiters()))
	return f
}

func (c *choice) groups(some []board.Entry) (all []group) {
	at := map[string]int{}
	for i := range some {
		e := &some[i]
		prefix := board.Group(e.Name)
		n, known := at[prefix]
		if !known {
			n, at[prefix] = len(all), len(all)
			of := choice{Query: inspect.Literal(prefix) + "*", Sort: c.Sort, Only: c.Only}
			all = append(all, group{Prefix: prefix, Link: of.link(1), query: of.Query})
		}
		g := &all[n]
		g.Count++
		g.Queued += e.Waiters()
		if e.IsHeld() {
			g.Held++
		}
		if e.Trouble != "" {
			g.InTrouble++
			g.Trouble = cmp.Or(g.Trouble, e.Trouble)
		}
		if !e.Since.IsZero() && (g.Since.IsZero() || e.Since.Before(g.Since)) {
			g.Since = e.Since
		}
	}
	return all
}

func part[T any](page *locksPage, some []T) []T {
	page.Listed = len(some)
	last := max(1, (len(some)+rows-1)/rows)
	n, _ := strconv.Atoi(page.page)
	n = min(max(n, 1), last)
	page.First, page.Last = (n-1)*rows+1, min(n*rows, len(some))
	if n > 1 {
		page.Previous = page.link(n - 1)
	}
	if n < last {
		page.Next = page.link(n + 1)
	}
	return some[page.First-1 : page.Last]
}
