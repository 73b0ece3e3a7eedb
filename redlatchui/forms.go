package redlatchui

import (
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	// namedHolders is how many holders a form names at most.
	namedHolders = 32
	// linkedOwner is how many bytes an owner has at most that is part of an address.
	linkedOwner = 1024
)

// formPage is the form of an action on a lock: what was seen when it was made.
type formPage struct {
	lockPage
	// Link is the address of the lock's page, Action where the form is sent.
	Link, Action string
	// Named are the holders that lose the lock.
	Named []namedHolder
	// Waiter is the one that is evicted, nil when it is not in the queue any more.
	Waiter *waiterView
	Param  string
	// Others is true when other holders keep the lock.
	Others bool
	// Wait is how long the action takes, "" when there is no lease to look at.
	Wait string
	look time.Duration // the same
}

// namedHolder is a holder and its owner as it stands in Redis.
type namedHolder struct {
	holderView
	Raw string
}

// commandAdvice is said of a dead waiter to all viewers, evictAdvice on the page that says that a
// lock was taken: to one with the link they name it in place of the command.
const (
	commandAdvice = " The command redlatch evict takes it out."
	evictAdvice   = ". If it is dead, `redlatch evict "
)

// offer puts the links to the forms in that the viewer may use.
func (page *lockPage) offer(name string, l *board.Lock, a Access) {
	if a.may(MayUnlock) {
		page.offerUnlock(name, l)
	}
	if !a.may(MayEvict) {
		return
	}
	for i := range page.Queue {
		if owner := l.Queue[i].Owner; l.Queue[i].State == board.Dead && len(owner) <= linkedOwner {
			page.Queue[i].Evict = "evict?" + lockQuery(name) + "&owner=" + ownerParam(owner)
		}
	}
	if len(page.Queue) == 0 || page.Queue[0].Evict == "" {
		return
	}
	if why, then, has := strings.Cut(page.Why, commandAdvice); has {
		page.Why, page.WhyEvict, page.WhyThen = why, page.Queue[0].Evict, then
	}
}

// offerUnlock puts the links to the forms in that take the lock from all holders, from each of
// several, or a permit back.
func (page *lockPage) offerUnlock(name string, l *board.Lock) {
	address := "unlock?" + lockQuery(name)
	if l.Held() && len(l.Holders) <= namedHolders {
		page.Unlock = address
	}
	for i := range page.Holders {
		if len(l.Holders) > 1 {
			page.Holders[i].Unlock = address + "&owner=" + ownerParam(l.Holders[i].Owner)
		}
	}
	for i := range page.Permits {
		if id := l.Permits[i].ID; len(id) <= linkedOwner {
			page.Permits[i].Unlock = address + "&owner=" + ownerParam(id)
		}
	}
}

// unlockForm serves the form that takes a lock away, from one holder if the address names one, or
// a permit back.
func (p *Page) unlockForm(w http.ResponseWriter, r *http.Request) {
	owner, err := "", error(nil)
	if param := r.URL.Query().Get("owner"); param != "" {
		owner, err = ownerFrom(param)
	}
	if err != nil {
		p.fail(w, err)
		return
	}
	p.form(w, r, unlockDeed, func(page *formPage, l *board.Lock) {
		page.Title = "Force unlock " + page.Name
		if l.Number == nil && l.Mode != codec.ModeRead {
			page.lasts(l.TTL)
		}
		for i := range l.Permits {
			if h := permitOf(&l.Permits[i]); h.Owner == owner {
				page.name(h)
			}
		}
		for i := range l.Holders {
			if h := l.Holders[i]; h.Owner == owner || owner == "" && len(l.Holders) <= namedHolders {
				page.name(h)
			}
		}
		page.Others = len(l.Holders) > len(page.Named)
	})
}

// name names a holder that loses the lock. A reader or a permit has a lease of its own.
func (page *formPage) name(h inspect.Holder) {
	v := holderOf(h)
	if h.Mode == "permit" {
		v.Link, v.Client = "", h.Describe(func(ms int64) string { return span(limits.FromMillis(ms)) })
	}
	if h.LeftMillis != nil {
		page.lasts(limits.FromMillis(*h.LeftMillis))
	}
	page.Named = append(page.Named, namedHolder{v, h.Owner})
}

// lasts says that a lease with so much left, negative for none, is looked at.
func (page *formPage) lasts(left time.Duration) {
	if left < 0 {
		return
	}
	page.look = max(page.look, repair.LookLimit(inspect.RenewalLook, left))
	page.Wait = span(page.look)
}

// permitOf returns a permit as what holds the semaphore.
func permitOf(p *rsemaphore.Permit) inspect.Holder {
	h := inspect.Holder{Owner: p.ID, Mode: "permit"}
	if p.Left >= 0 {
		left := p.Left.Milliseconds()
		h.LeftMillis = &left
	}
	return h
}

// evictForm serves the form that takes a waiter out of the queue.
func (p *Page) evictForm(w http.ResponseWriter, r *http.Request) {
	owner, err := ownerFrom(r.URL.Query().Get("owner"))
	if err != nil {
		p.fail(w, err)
		return
	}
	p.form(w, r, evictDeed, func(page *formPage, l *board.Lock) {
		page.Title, page.Wait, page.Param = "Evict from the queue of "+page.Name, span(repair.AbsentFor), ownerParam(owner)
		for i := range l.Queue {
			if l.Queue[i].Owner == owner {
				page.Waiter = &page.Queue[i]
			}
		}
	})
}

// form serves the form of an action on a lock as it is now.
func (p *Page) form(w http.ResponseWriter, r *http.Request, d deed, fill func(*formPage, *board.Lock)) {
	err := accessOf(r).needs(d.right)
	if err != nil {
		p.fail(w, err)
		return
	}
	name, err := p.named(r)
	if err == nil && limits.Name(name) != nil {
		err = errOddName
	}
	if err != nil {
		p.fail(w, err)
		return
	}
	l, _, err := p.look(r, name)
	if err != nil {
		p.fail(w, err)
		return
	}
	page := formPage{
		lockPage: lockPage{frame: p.frame("", ""), Name: nameText(name)}, Link: lockLink(name), Action: string(d.name) + "?" + lockQuery(name),
	}
	if l == nil {
		page.Title, page.Err = page.Name, notAnswered
	} else {
		page.fill(l)
		page.offer(name, l, accessOf(r))
		fill(&page, l)
	}
	p.show(w, string(d.name)+".html", &page)
}
