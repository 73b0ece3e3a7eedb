package redlatchui

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

const (
	namedHolders = 32
	linkedOwner  = 1024
)

type formPage struct {
	lockPage
	Link, Action string
	// Others reports whether holders that are not in Named keep the lock.
	Named  []inspect.Holder
	Others bool
	// Waiter is nil if the waiter is no longer queued.
	Waiter *board.Waiter
	Param  string
	// Dead are the dead waiters near the front.
	Dead []board.Waiter
	// Wait is how long the action takes, or 0 if it is immediate.
	Wait time.Duration
}

// The page replaces this advice with a link if the viewer may evict.
const (
	commandAdvice = " The command redlatch evict removes it."
	evictAdvice   = ". If it is dead, `redlatch evict "
)

// ownerParam encodes an owner, which may contain any bytes.
func ownerParam(owner string) string { return base64.RawURLEncoding.EncodeToString([]byte(owner)) }

func ownerFrom(param string) (string, error) {
	owner, err := base64.RawURLEncoding.DecodeString(param)
	if err != nil || len(owner) == 0 {
		return "", errForm
	}
	return string(owner), nil
}

// EvictLink returns "" if the viewer may not evict.
func (page *lockPage) EvictLink(q board.Waiter) string {
	if !page.viewer.may(MayEvict) || q.State != board.Dead || len(q.Owner) > linkedOwner {
		return ""
	}
	return "evict?" + lockQuery(page.name) + "&owner=" + ownerParam(q.Owner)
}

// EvictAllLink returns "" if the viewer does not have the right, or if there is at most one dead waiter.
func (page *lockPage) EvictAllLink() string {
	if !page.viewer.may(MayEvict) || page.DeadCount() < 2 {
		return ""
	}
	return actionEvictAll + "?" + lockQuery(page.name)
}

func (page *lockPage) DeadCount() int { return len(deadOf(page.Lock)) }

func deadOf(l *board.Lock) (dead []board.Waiter) {
	for _, q := range l.Queue {
		if q.State == board.Dead {
			dead = append(dead, q)
		}
	}
	return dead
}

func (page *lockPage) offerEvict() {
	if len(page.Lock.Queue) == 0 {
		return
	}
	link := page.EvictLink(page.Lock.Queue[0])
	if why, then, has := strings.Cut(page.Why, commandAdvice); has && link != "" {
		page.Why, page.WhyEvict, page.WhyThen = why, link, then
	}
}

// UnlockLink returns "" if the viewer may not unlock.
func (page *lockPage) UnlockLink() string {
	if !page.viewer.may(MayUnlock) || len(page.Lock.Holders) > namedHolders {
		return ""
	}
	return "unlock?" + lockQuery(page.name)
}

// UnlockLinkOf is like UnlockLink for a single holder or permit.
func (page *lockPage) UnlockLinkOf(owner string) string {
	if !page.viewer.may(MayUnlock) || len(page.Lock.Holders) == 1 && page.Lock.Number == nil || len(owner) > linkedOwner {
		return ""
	}
	return "unlock?" + lockQuery(page.name) + "&owner=" + ownerParam(owner)
}

func (p *Page) unlockForm(r *http.Request) (template string, _ any, err error) {
	return p.form(r, unlockDeed, func(page *formPage, l *board.Lock, owner string) {
		page.Title = "Force unlock " + page.Name
		if l.Number == nil && l.Mode != protocol.ModeRead {
			page.lasts(l.TTL)
		}
		all := owner == "" && l.Number == nil && len(l.Holders) <= namedHolders
		for _, h := range l.Holders {
			if !all && h.Owner != owner {
				continue
			}
			if h.LeftMillis != nil {
				page.lasts(limits.FromMillis(*h.LeftMillis))
			}
			page.Named = append(page.Named, h)
		}
		page.Others = len(l.Holders) > len(page.Named)
	})
}

// lasts extends Wait to the time needed to watch a lease. A negative left means no lease.
func (page *formPage) lasts(left time.Duration) {
	if left >= 0 {
		page.Wait = max(page.Wait, repair.LookLimit(inspect.RenewalLook, left))
	}
}

func (p *Page) evictForm(r *http.Request) (template string, _ any, err error) {
	return p.form(r, evictDeed, func(page *formPage, l *board.Lock, owner string) {
		page.Title, page.Wait, page.Param = "Evict from the queue of "+page.Name, repair.AbsentFor, ownerParam(owner)
		for i := range l.Queue {
			if l.Queue[i].Owner == owner {
				page.Waiter = &l.Queue[i]
			}
		}
	})
}

func (p *Page) evictAllForm(r *http.Request) (template string, _ any, err error) {
	return p.form(r, evictAllDeed, func(page *formPage, l *board.Lock, _ string) {
		page.Title, page.Wait, page.Dead = "Evict all dead waiters of "+page.Name, repair.AbsentFor, deadOf(l)
	})
}

func (p *Page) form(r *http.Request, d deed, fill func(*formPage, *board.Lock, string)) (template string, _ any, err error) {
	if err := accessOf(r).needs(d.right); err != nil {
		return "", nil, err
	}
	owner := ""
	if param := r.URL.Query().Get("owner"); param != "" || d.name == actionEvict {
		if owner, err = ownerFrom(param); err != nil {
			return "", nil, err
		}
	}
	name, err := p.named(r)
	if err == nil && limits.Name(name) != nil {
		err = errOddName
	}
	if err != nil {
		return "", nil, err
	}
	l, _, err := p.look(r, name)
	if err != nil {
		return "", nil, err
	}
	page := formPage{lockPage: p.lockPage(r, name, l), Link: lockLink(name), Action: d.name + "?" + lockQuery(name)}
	if page.Title = page.Name; page.Lock != nil {
		fill(&page, l, owner)
	}
	return d.name + ".html", &page, nil
}
