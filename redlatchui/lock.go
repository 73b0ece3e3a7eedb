package redlatchui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const notAnswered = "The server has not answered yet."

var (
	errNoName  = errors.New("the URL does not name a lock")
	errUnknown = errors.New("unknown lock. To find locks with very long names, use the page of all locks")
	errHidden  = errors.New("this page does not show locks of that name")
)

// looksApart is how much a lease may exceed the longest TTL seen.
const looksApart = time.Second

type lockPage struct {
	frame
	Name string
	// Lock is nil if nothing is known. MoreHolders counts the holders that are not shown.
	Lock        *board.Lock
	MoreHolders int
	// If Why mentions a dead waiter that the viewer may evict, WhyEvict is the address of the form and WhyThen is the
	// rest of the text.
	Why, WhyEvict, WhyThen string
	Level                  board.Level
	Figures                *figures

	name   string
	viewer Access
}

func isLock(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("name") || q.Has("hash")
}

func (p *Page) named(r *http.Request) (string, error) {
	name, hash := r.URL.Query().Get("name"), r.URL.Query().Get("hash")
	switch {
	case name == "" && hash == "":
		return "", errNoName
	case hash != "":
		l, err := p.scanned(r, func(e *board.Entry) bool { return len(e.Name) > linkedName && hashOf(e.Name) == hash })
		if err != nil {
			return "", err
		}
		return l.Name, nil
	case !p.shown(name):
		return "", errHidden
	}
	return name, nil
}

func (p *Page) scanned(r *http.Request, meant func(*board.Entry) bool) (*board.Lock, error) {
	all, err := current(r, p.board.Locks)
	if err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errUnknown
	}
	if l := all.Lock(meant); l != nil {
		return l, nil
	}
	return nil, errUnknown
}

func (p *Page) lock(r *http.Request) (template string, _ any, err error) {
	name, err := p.named(r)
	if err != nil {
		return "", nil, err
	}
	l, live, err := p.look(r, name)
	if err != nil {
		return "", nil, err
	}
	page := p.lockPage(r, name, l)
	page.Title, page.Section, page.Stream = page.Name, "locks", "events?"+lockQuery(name)
	if limits.Name(name) != nil {
		page.Stream = "events"
	}
	if !live {
		page.Stream = ""
		page.Err = strings.TrimSpace(page.Err + " Too many lock pages are open, so this one is not updated: reload it to see the current state.")
	}
	return "lock.html", &page, nil
}

// look returns the state of a lock, or nil if the server does not reply. live means that the page is kept up to date.
func (p *Page) look(r *http.Request, name string) (l *board.Lock, live bool, err error) {
	if limits.Name(name) != nil {
		l, err = p.scanned(r, func(e *board.Entry) bool { return e.Name == name })
		return l, true, err
	}
	feed, err := p.board.Lock(name, sourceOf(r))
	switch {
	case errors.Is(err, board.ErrBusy):
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		l, err = p.board.LookOnce(ctx, name)
		return l, false, err
	case err != nil:
		return nil, false, err
	}
	l, err = current(r, feed)
	return l, true, err
}

// current returns nil if the server does not reply.
func current[T any](r *http.Request, f *board.Feed[T]) (*T, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	value, _, err := f.Get(ctx)
	return value, err
}

// sourceOf returns the address of a request, or the /64 network for IPv6, because one host may own all of it.
func sourceOf(r *http.Request) string {
	const network = 64
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	of, _ := host.Prefix(network) // the address has at least this many bits
	return of.String()
}

// lockPage accepts a nil lock if the server has not replied.
func (p *Page) lockPage(r *http.Request, name string, l *board.Lock) lockPage {
	page := lockPage{frame: p.frame(""), Name: board.NameText(name), name: name, viewer: accessOf(r)}
	if l == nil {
		page.Err = notAnswered
		return page
	}
	page.seen(&l.Seen)
	if l.At.IsZero() {
		return page
	}
	shown := *l
	shown.Holders = top(l.Holders, rows)
	page.Lock, page.MoreHolders = &shown, len(l.Holders)-len(shown.Holders)
	if l.Number != nil {
		page.MoreHolders = int(l.Number.Taken) - len(shown.Holders)
	}
	said := l.Verdict()
	if page.Why, page.Level = said.Text, said.Level; page.Level == board.Fine && l.Old(time.Now()) {
		page.Level = board.Calm // the holder was alive
	}
	page.figures(l, p.board.Series(board.OfLock, name))
	if limits.Name(name) != nil {
		page.Level = board.Calm
		page.Why = "The name is not valid UTF-8, so only scan results are shown: the holders and the length of the queue."
		page.viewer &= ReadOnly
	}
	page.offerEvict()
	return page
}

func (page *lockPage) figures(l *board.Lock, s *board.Series) {
	if page.Figures = figuresOf("This lock", s, 0, l.Waiters()); page.Figures == nil {
		return
	}
	held, known := 0, 0
	for _, p := range s.Points {
		if p.Known {
			known++
			held += int(p.Held)
		}
	}
	h := page.Figures.Held
	h.Name, h.Now, h.Note = "Held", "free", fmt.Sprintf("held in %d of %d intervals", held, known)
	if l.Held() {
		h.Now = "held"
	}
	h.Title = fmt.Sprintf("Held %s: %s, now %s", page.Figures.During, h.Note, h.Now)
}

func top[T any](some []T, n int) []T { return some[:min(len(some), n)] }

func (page *lockPage) Lease() string { return page.Lock.LeaseText(page.Lock.At) }

func (page *lockPage) Waits() string { return page.Lock.Waits() }

// LeaseWhole is the length of the lease in milliseconds, or 0 if its beginning was not seen.
func (page *lockPage) LeaseWhole() int64 {
	l := page.Lock
	if l.TTL >= 0 && (l.Exact || l.Renewed == inspect.RenewedYes) {
		return (l.Lease + looksApart).Milliseconds()
	}
	return 0
}

func ownerWord(owner string) string { return sanitize.Word(sanitize.Message(owner)) }
