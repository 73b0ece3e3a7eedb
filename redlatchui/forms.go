package redlatchui

import (
	"net/http"
	"strings"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
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
	// Wait is how long the action takes.
	Wait string
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
	evictAdvice   = ". If it is dead, redlatch evict takes it out of the queue"
)

// offer puts the links to the forms in that the viewer may use.
func (page *lockPage) offer(name string, l *board.Lock, a Access) {
	if a.may(MayUnlock) && l.Held() && len(l.Holders) <= namedHolders {
		page.Unlock = "unlock?" + lockQuery(name)
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

// unlockForm serves the form that takes a lock away.
func (p *Page) unlockForm(w http.ResponseWriter, r *http.Request) {
	p.form(w, r, unlockDeed, func(page *formPage, l *board.Lock) {
		page.Title, page.Wait = "Force unlock "+page.Name, span(repair.LookLimit(inspect.RenewalLook, l.TTL))
		if len(l.Holders) <= namedHolders {
			for _, h := range l.Holders {
				page.Named = append(page.Named, namedHolder{holderOf(h), h.Owner})
			}
		}
	})
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
