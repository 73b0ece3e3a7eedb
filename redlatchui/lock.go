package redlatchui

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

// notAnswered is said before there is anything to show.
const notAnswered = "The server has not answered yet."

// Why there is no page of a lock.
var (
	errNoName  = errors.New("the address names no lock")
	errUnknown = errors.New("no lock of that name is known here. Locks with very long names are found on the page of all locks")
	errHidden  = errors.New("locks of that name are not shown here")
)

// looksApart is about how much longer a lease may be than the most that was seen of it.
const looksApart = time.Second

// lockPage is the page of one lock.
type lockPage struct {
	frame
	Name, Kind string
	Known      bool
	Held       bool
	// Why is the sentence that says why it does not move. For a viewer who may evict a dead waiter
	// that it speaks of, WhyEvict is the address of the form, and WhyThen the rest of it.
	Why, WhyEvict, WhyThen string
	Holders                []holderView
	MoreHolders            int
	Since                  string
	Lease                  string
	// Leased is true when there is a lease. LeasePart of LeaseWhole, in ms, is what is left;
	// LeaseWhole is 0 when it is not known.
	Leased                bool
	LeasePart, LeaseWhole int64
	Renewed               string
	Token                 int64
	Queue                 []waiterView
	// Unlock is the address of the form that takes the lock away, "" for a viewer without the
	// right.
	Unlock        string
	Waiting, More int
	QueueUnread   string
	Uncounted     string
	// Waits says who waits without a place in the queue. Circles and Mutual are as in whoPage.
	Waits           string
	Circles, Mutual []circleView
	Number          bool
	Permits         []permitView
	MorePermits     int64
	Events          []eventView
}

// words name what board.Lock.Why speaks of.
var words = board.Words{Owner: ownerText, Lock: nameText, Span: span}

// holderView is a holder as it is shown. Unlock is the address of the form that takes the lock from
// it alone, "" for none.
type holderView struct{ Key, Owner, Link, Label, Client, Count, Role, Unlock string }

// waiterView is a waiter as it is shown.
type waiterView struct {
	Position                                    int
	Key                                         string
	Owner, Link, Label, Client, Deadline, State string
	// Evict is the address of the form that evicts it, "" for none.
	Evict string
}

// permitView is a permit that is taken, as it is shown. Unlock is the address of the form that takes
// it back, "" for none.
type permitView struct{ Key, ID, Left, Unlock string }

// eventView is an event as it is shown: the owner, if any, stands between Head and Tail.
type eventView struct {
	Key, At, Head string
	Owner         named
	Tail          string
}

// isLock reports whether a request names a lock.
func isLock(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("name") || q.Has("hash")
}

// named returns the name of the lock that a request is about.
func (p *Page) named(r *http.Request) (string, error) {
	name, hash := r.URL.Query().Get("name"), r.URL.Query().Get("hash")
	switch {
	case name == "" && hash == "":
		return "", errNoName
	case hash != "":
		return p.find(r.Context(), func(e *board.Entry) bool { return len(e.Name) > linkedName && hashOf(e.Name) == hash })
	case !p.shown(name):
		return "", errHidden
	}
	return name, nil
}

// find returns the name of the first lock that is meant.
func (p *Page) find(ctx context.Context, meant func(*board.Entry) bool) (string, error) {
	e, err := p.entry(ctx, meant)
	if err != nil {
		return "", err
	}
	return e.Name, nil
}

// entry returns the first lock that is meant of those that the last scan has found.
func (p *Page) entry(ctx context.Context, meant func(*board.Entry) bool) (*board.Entry, error) {
	all, err := current(ctx, p.board.Locks)
	if err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errUnknown
	}
	for i := range all.Entries {
		if meant(&all.Entries[i]) {
			return &all.Entries[i], nil
		}
	}
	return nil, errUnknown
}

// lock serves the page of one lock.
func (p *Page) lock(w http.ResponseWriter, r *http.Request) {
	name, err := p.named(r)
	if err != nil {
		p.fail(w, err)
		return
	}
	page := lockPage{frame: p.frame(nameText(name), "events?"+lockQuery(name)), Name: nameText(name)}
	page.Section = "locks"
	if limits.Name(name) != nil {
		p.odd(w, r, &page, name)
		return
	}
	l, live, err := p.look(r, name)
	switch {
	case err != nil:
		p.fail(w, err)
		return
	case l == nil:
		page.Err = notAnswered
	default:
		page.fill(l)
		page.offer(name, l, accessOf(r))
	}
	if !live {
		page.Stream = ""
		page.Err = strings.TrimSpace(page.Err + " The pages of too many locks are open, so this one is not kept up to date: load it again to see the lock as it is then.")
	}
	p.show(w, "lock.html", &page)
}

// look looks at a lock, and reports whether its page can be kept up to date. It returns nil when the
// server does not answer.
func (p *Page) look(r *http.Request, name string) (l *board.Lock, live bool, err error) {
	feed, err := p.board.Lock(name, clientOf(r))
	switch {
	case errors.Is(err, board.ErrBusy):
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		l, err = p.board.LookOnce(ctx, name)
		return l, false, err
	case err != nil:
		return nil, false, err
	}
	l, err = current(r.Context(), feed)
	return l, true, err
}

// current returns the newest value of a feed, nil if the server does not answer.
func current[T any](ctx context.Context, f *board.Feed[T]) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, _, err := f.Get(ctx)
	return value, err
}

// clientOf is where a request comes from: an address, or for IPv6 a network, of which one host may
// have all addresses.
func clientOf(r *http.Request) string {
	const network = 64
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	of, err := host.Prefix(network)
	if err != nil {
		return host.String()
	}
	return of.String()
}

// odd serves the page of a lock whose name no client of Redlatch can use: it has what the last
// scan has found.
func (p *Page) odd(w http.ResponseWriter, r *http.Request, page *lockPage, name string) {
	page.Stream = "events"
	e, err := p.entry(r.Context(), func(e *board.Entry) bool { return e.Name == name })
	if err != nil {
		p.fail(w, err)
		return
	}
	page.Known, page.Held, page.Kind = true, len(e.Holders) > 0, kindText(e.Kind, e.Mode)
	page.Why = "The name is not valid UTF-8, so only what a scan finds is shown: the holders and the length of the queue."
	for _, h := range e.Holders {
		page.holder(inspect.HolderOf(h, e.Kind), "")
	}
	page.Waiting, page.More = int(e.Queue), int(e.Queue)
	if page.Held && e.TTL < 0 {
		page.Lease = "none: it stays until it is released"
	} else if page.Held {
		page.Lease = span(e.TTL) + " left at the last scan"
	}
	p.show(w, "lock.html", page)
}

// fill puts the lock in.
func (page *lockPage) fill(l *board.Lock) {
	page.seen(&l.Seen)
	if page.Known = !l.At.IsZero(); !page.Known {
		return
	}
	page.Held, page.Kind, page.Token = l.Held(), kindText(l.Kind, l.Mode), l.Token
	page.Why = l.Why(words)
	for i, h := range l.Holders {
		held := ""
		if len(l.Holders) > 1 {
			held = ", held " + ageText(l.Ages[i], l.At)
		}
		page.holder(h, held)
	}
	page.Circles, page.Mutual = circlesOf(l.Circles, func(*board.Circle) bool { return true })
	page.lease(l)
	page.number(l)
	page.Waiting, page.More, page.QueueUnread = l.Waiting, l.Waiting-len(l.Queue), sanitize.Message(l.QueueUnread)
	page.Waits = l.Waits()
	if l.Uncounted != "" {
		page.Uncounted = fullSentence(l.Uncounted)
	}
	for i := range l.Queue {
		waiter := waiterOf(&l.Queue[i], l.At)
		waiter.Key = page.key("queue", l.Queue[i].Owner)
		page.Queue = append(page.Queue, waiter)
	}
	for i := range l.Events {
		event := eventOf(&l.Events[i])
		event.Key = page.key("event", l.Events[i].At.Format(time.RFC3339Nano), l.Events[i].What, l.Events[i].Owner)
		page.Events = append(page.Events, event)
	}
}

// lease says since when it is held and for how long.
func (page *lockPage) lease(l *board.Lock) {
	if !page.Held {
		return
	}
	page.Since = ageText(l.Age, l.At)
	if l.TTL < 0 {
		page.Lease = "none: it stays until it is released"
		return
	}
	page.Leased, page.Lease = true, span(l.TTL)+" left"
	if l.Exact || l.Renewed == inspect.RenewedYes { // its beginning was seen
		page.LeasePart, page.LeaseWhole = l.TTL.Milliseconds(), (l.Lease + looksApart).Milliseconds()
	}
	switch l.Renewed {
	case inspect.RenewedYes:
		page.Renewed = "renewed"
	case inspect.RenewedNo:
		page.Renewed = "not renewed when due: fixed, or the client is gone"
	default:
		page.Renewed = "renewed or fixed: not known yet"
	}
}

// number puts the permits of a semaphore in.
func (page *lockPage) number(l *board.Lock) {
	if page.Number = l.Number != nil; !page.Number {
		return
	}
	for _, permit := range l.Permits[:min(len(l.Permits), rows)] {
		left := "its lease never ends"
		switch {
		case permit.Left == 0:
			left = "its lease is over"
		case permit.Left > 0:
			left = span(permit.Left) + " left"
		}
		page.Permits = append(page.Permits, permitView{Key: page.key("permit", permit.ID), ID: nameText(permit.ID), Left: left})
	}
	page.MorePermits = l.Number.Taken - int64(len(page.Permits))
}

// ageText says since when a hold lasts.
func ageText(a board.Age, at time.Time) string {
	if a.Exact {
		return "since " + a.Since.UTC().Format(time.TimeOnly) + " UTC, for " + span(at.Sub(a.Since))
	}
	return "for at least " + span(at.Sub(a.Since))
}

// holder puts a holder in, and for how long it holds, as long as there are not too many.
func (page *lockPage) holder(h inspect.Holder, held string) {
	if len(page.Holders) == rows {
		page.MoreHolders++
		return
	}
	v := holderOf(h)
	v.Client += held
	v.Key = page.key("holder", h.Owner)
	page.Holders = append(page.Holders, v)
}

func holderOf(h inspect.Holder) holderView {
	v := holderView{Owner: sanitize.Word(h.Owner), Link: clientLink(h.Owner), Label: labelText(h.Label), Client: h.String(), Count: sanitize.Word(string(h.Count))}
	switch {
	case h.Mode == "write":
		v.Role = "writes"
	case h.IsOver():
		v.Role = "reads, its own lease is over"
	case h.Mode == "read":
		v.Role = "reads"
	}
	return v
}

func waiterOf(q *board.Waiter, at time.Time) waiterView {
	v := waiterView{
		Position: q.Position, Owner: sanitize.Word(sanitize.Message(q.Owner)), Link: clientLink(q.Owner), Label: labelText(q.Label),
		Client: q.String(), Deadline: "none", State: q.State,
	}
	if !q.Deadline.IsZero() {
		if v.Deadline = "in " + span(q.Deadline.Sub(at)); !q.Deadline.After(at) {
			v.Deadline = "over"
		}
	}
	return v
}

// happenings say what has happened; %s is the owner.
var happenings = map[string]string{
	follow.Held:     "held by %s when this page was opened",
	follow.Free:     "free when this page was opened",
	follow.Taken:    "taken by %s",
	follow.Passed:   "passed to %s",
	follow.Released: "released by %s",
	follow.Expired:  "the lease of %s is over",
	follow.Gone:     "%s does not hold it any more",
	follow.Entered:  "entered by %s",
	follow.Left:     "left by %s",
	follow.Queued:   "%s is queued",
	follow.Quit:     "%s has left the queue",
}
