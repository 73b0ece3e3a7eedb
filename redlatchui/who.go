package redlatchui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

const (
	// clientRows is how many clients, and how many locks of one client, a page has.
	clientRows = 200
	// shownSteps is how many waits of a circle a page has.
	shownSteps = 50
)

// whoPage is the page of all clients.
type whoPage struct {
	frame
	Query       string
	Rows        []clientRow
	Found, More int
	// Circles are sure; in those of Mutual only the clients wait for each other.
	Circles, Mutual []circleView
}

// clientRow is a client in the table.
type clientRow struct {
	Key             string
	Client          named
	ID, Library     string
	Holds, Waits    int
	InCircle        bool
	Trouble, Oldest string
}

// clientPage is the page of one client.
type clientPage struct {
	frame
	Name, ID, Label     string
	Library             string
	Holds               []holdRow
	Waits               []waitRow
	MoreHolds, MoreWait int
	// Circles and Mutual are as in whoPage.
	Circles, Mutual []circleView
}

// holdRow is a lock that the client holds.
type holdRow struct {
	Key, Link, Name, Kind string
	Owner, Count          string
	// Others is how many more locks the same owner holds.
	Others       int
	Since, Lease string
	Queue        string
	Next         named
	Trouble      string
}

// waitRow is a place of the client's in a queue.
type waitRow struct {
	Key, Link, Name, Kind string
	Owner                 string
	Position              int
	Queue                 string
	Holder                named
	Trouble               string
}

// circleView is a circle of waits as it is shown.
type circleView struct {
	Sure  bool
	Steps []stepView
	// More waits are not shown.
	More int
}

// stepView is one wait of it.
type stepView struct {
	Waiter, Holder named
	Lock           named
}

// who serves the page of all clients, or of one.
func (p *Page) who(w http.ResponseWriter, r *http.Request) {
	all, err := current(r.Context(), p.board.Locks)
	if err != nil {
		p.fail(w, err)
		return
	}
	if id := r.URL.Query().Get("client"); id != "" {
		p.client(w, all, id)
		return
	}
	query := r.URL.Query().Get("q")
	page := whoPage{frame: p.frame("Clients", "events"), Query: query[:min(len(query), longestQuery)]}
	if page.Section = "who"; all == nil {
		page.Err = firstScan
	} else {
		page.scanned(all)
		page.fill(all)
	}
	p.show(w, "who.html", &page)
}

// fill puts the clients in: those in a circle first, then those with most locks.
func (page *whoPage) fill(all *board.Locks) {
	var some []*board.Client
	for i := range all.Clients {
		c := &all.Clients[i]
		if strings.Contains(c.ID, page.Query) || strings.Contains(c.Label, page.Query) {
			some = append(some, c)
		}
	}
	slices.SortStableFunc(some, func(a, b *board.Client) int {
		if a.InCircle != b.InCircle {
			return btoi(b.InCircle) - btoi(a.InCircle)
		}
		return cmp.Compare(len(b.Holds)+len(b.Waits), len(a.Holds)+len(a.Waits))
	})
	page.Found, page.More = len(some), max(0, len(some)-clientRows)
	for _, c := range some[:len(some)-page.More] {
		row := clientRowOf(c, all.Moment())
		row.Key = page.key(c.ID)
		page.Rows = append(page.Rows, row)
	}
	page.Circles, page.Mutual = circlesOf(all.Circles, func(*board.Circle) bool { return true })
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// clientRowOf makes a row of a client.
func clientRowOf(c *board.Client, now time.Time) clientRow {
	row := clientRow{
		Client: named{clientName(c), clientLink(c.ID)}, ID: nameText(c.ID), Library: c.String(),
		Holds: len(c.Holds), Waits: len(c.Waits), InCircle: c.InCircle,
	}
	var oldest time.Time
	for i := range c.Holds {
		h := &c.Holds[i]
		row.Trouble = cmp.Or(row.Trouble, sentence(h.Trouble))
		if oldest.IsZero() || h.Since.Before(oldest) {
			oldest = h.Since
		}
	}
	if !oldest.IsZero() {
		row.Oldest = span(now.Sub(oldest))
	}
	return row
}

// clientName names a client by its label, or by its library and the end of its UUID.
func clientName(c *board.Client) string {
	if c.Label != "" {
		return labelText(c.Label)
	}
	short := inspect.OwnerNumber(c.ID + ":0")
	if c.Kind == "unknown" {
		return nameText(c.ID)
	}
	return c.Name() + " " + strings.TrimSuffix(short, ":0")
}

// client serves the page of one client.
func (p *Page) client(w http.ResponseWriter, all *board.Locks, id string) {
	page := clientPage{frame: p.frame(nameText(id), "events"), ID: nameText(id)}
	page.Section = "who"
	if all == nil {
		page.Name, page.Err = page.ID, firstScan
		p.show(w, "client.html", &page)
		return
	}
	page.scanned(all)
	if c := all.Client(id); c != nil {
		page.fill(all, c)
	} else {
		page.Name = page.ID // it may come again
	}
	p.show(w, "client.html", &page)
}

// fill puts a client in.
func (page *clientPage) fill(all *board.Locks, c *board.Client) {
	now := all.Moment()
	page.Name, page.Library = clientName(c), c.String()
	if c.Label != "" {
		page.Label, page.Title = labelText(c.Label), page.Name
	}
	byOwner := map[string]int{}
	for i := range c.Holds {
		byOwner[c.Holds[i].Owner]++
	}
	page.MoreHolds, page.MoreWait = max(0, len(c.Holds)-clientRows), max(0, len(c.Waits)-clientRows)
	for i := range c.Holds[:len(c.Holds)-page.MoreHolds] {
		row := holdRowOf(&c.Holds[i], byOwner, all.At, now)
		row.Key = page.key("holds", c.Holds[i].Name, c.Holds[i].Owner)
		page.Holds = append(page.Holds, row)
	}
	for i := range c.Waits[:len(c.Waits)-page.MoreWait] {
		row := waitRowOf(&c.Waits[i])
		row.Key = page.key("waits", c.Waits[i].Name, c.Waits[i].Owner)
		page.Waits = append(page.Waits, row)
	}
	page.Circles, page.Mutual = circlesOf(all.Circles, func(circle *board.Circle) bool {
		return slices.ContainsFunc(circle.Steps, func(s board.Step) bool { return board.ClientID(s.Waiter) == c.ID })
	})
}

func holdRowOf(h *board.Hold, byOwner map[string]int, at, now time.Time) holdRow {
	row := rowOf(&h.Entry, at, now)
	return holdRow{
		Link: row.Link, Name: row.Name, Kind: row.Kind, Owner: sanitize.Word(h.Owner), Count: sanitize.Word(h.Count),
		Others: byOwner[h.Owner] - 1, Since: row.Since, Lease: row.Lease, Queue: row.Queue, Next: row.Next, Trouble: row.Trouble,
	}
}

func waitRowOf(w *board.Wait) waitRow {
	row := waitRow{
		Link: lockLink(w.Name), Name: nameText(w.Name), Kind: kindText(w.Kind, w.Mode),
		Owner: sanitize.Word(sanitize.Message(w.Owner)), Position: w.Position, Queue: queueText(&w.Entry), Trouble: sentence(w.Trouble),
	}
	if w.Dead {
		row.Queue += ", dead"
	}
	if len(w.Holders) > 0 {
		row.Holder = ownerOf(w.Holders[0].Owner, w.Holders[0].Label)
	}
	return row
}

// circlesOf shows those of the circles that are meant: those that are sure, and the others.
func circlesOf(all []board.Circle, meant func(*board.Circle) bool) (sure, mutual []circleView) {
	for i := range all {
		c := &all[i]
		if !meant(c) {
			continue
		}
		v := circleView{Sure: c.Sure, More: max(0, len(c.Steps)-shownSteps)}
		for _, s := range c.Steps[:len(c.Steps)-v.More] {
			v.Steps = append(v.Steps, stepView{
				ownerOf(s.Waiter, s.WaiterLabel), ownerOf(s.Holder, s.HolderLabel), named{nameText(s.Lock), lockLink(s.Lock)},
			})
		}
		if c.Sure {
			sure = append(sure, v)
		} else {
			mutual = append(mutual, v)
		}
	}
	return sure, mutual
}

// firstScan is said before there is anything to show.
const firstScan = "The first scan goes on. This page shows what it has found when it has ended."

// scanned says when the locks were seen, and what was wrong.
func (f *frame) scanned(all *board.Locks) {
	f.seen(&all.Seen)
	if all.Total > len(all.Entries) && f.Err == "" {
		f.Err = fmt.Sprintf("There are %d locks. Only the %d with most trouble are looked into here.", all.Total, len(all.Entries))
	}
}
