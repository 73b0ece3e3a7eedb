package redlatchui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Access is what a viewer may do. Rights are joined with |.
type Access uint8

const (
	// NoAccess shows nothing: requests are answered with 403.
	NoAccess Access = 0
	// ReadOnly shows all that the page shows, and changes nothing.
	ReadOnly Access = 1
	// MayUnlock is ReadOnly with the action ActionUnlock.
	MayUnlock = ReadOnly | 1<<1
	// MayEvict is ReadOnly with the action ActionEvict.
	MayEvict = ReadOnly | 1<<2
	// FullAccess is ReadOnly with all actions, also those that later versions have.
	FullAccess Access = 0xff
)

// Why a viewer is refused.
var (
	errNoAccess = errors.New("you may not see this page")
	errNoRight  = errors.New("you may not do this")
)

// may reports whether a has the right, or all of them.
func (a Access) may(right Access) bool { return a&right == right }

// needs returns why a viewer is refused that for which the right is needed, nil if a has it.
func (a Access) needs(right Access) error {
	switch {
	case !a.may(ReadOnly):
		return errNoAccess
	case !a.may(right):
		return errNoRight
	}
	return nil
}

func isDenied(err error) bool { return errors.Is(err, errNoAccess) || errors.Is(err, errNoRight) }

func (o *Options) access(r *http.Request) Access {
	a := ReadOnly
	if o.Access != nil {
		a = o.Access(r)
	}
	if o.ReadOnly {
		a &= ReadOnly
	}
	return a
}

func (o *Options) changesNothing() bool { return o.Access == nil || o.ReadOnly }

type accessKey struct{}

func accessOf(r *http.Request) Access {
	a, _ := r.Context().Value(accessKey{}).(Access)
	return a
}

// admit lets requests through to next of viewers who may see the page, once asked for each
// request. Actions refuse by themselves, so that the audit has what was tried. Styles and scripts
// are no secrets.
func (p *Page) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/static/") {
			next.ServeHTTP(w, r)
			return
		}
		a := p.options.access(r)
		if err := a.needs(ReadOnly); err != nil && r.Method != http.MethodPost {
			p.fail(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, a)))
	})
}

// Action is what a viewer with the right can do.
type Action string

const (
	// ActionUnlock takes a lock away from holders that are dead, or a permit of a semaphore, as
	// redlatch unlock --force does with --dead: a holder whose lease is seen to be renewed keeps
	// it, and so do all holders that the form does not name.
	ActionUnlock Action = "unlock"
	// ActionEvict takes a dead waiter out of the queue of a fair lock, as redlatch evict does: a
	// waiter with a subscriber stays.
	ActionEvict Action = "evict"
)

// Outcome is what has become of an action.
type Outcome string

const (
	// OutcomeBegun says that the action is about to begin: nothing was sent to Redis.
	OutcomeBegun Outcome = "begun"
	// OutcomeDone says that it was done.
	OutcomeDone Outcome = "done"
	// OutcomeRefused says that nothing was done: the holder lives, the lock has changed hands,
	// or the form was not complete.
	OutcomeRefused Outcome = "refused"
	// OutcomeDenied says that the viewer has no right to it. Nothing was sent to Redis.
	OutcomeDenied Outcome = "denied"
	// OutcomeFailed says that Redis did not do it, or that it is not known whether it has.
	OutcomeFailed Outcome = "failed"
)

// Attempt is an action that a viewer has tried, for Options.Audit. Lock and Owners are bytes that
// others wrote, Reason and Remote what the viewer has sent: escape them.
type Attempt struct {
	// At is when the viewer has sent the form, by this machine's clock, in UTC.
	At time.Time
	// Action is what was tried.
	Action Action
	// User is what Options.User has said, "" without it.
	User string
	// Remote is the address that the request came from: of a proxy, if there is one.
	Remote string
	// Lock is the lock's name as it is on the server. In place of a name of more than 1,024
	// bytes it may be the SHA-256 hash of the name, when nothing was done.
	Lock string
	// Owners are those that the form has named: the holders that lose the lock, the id of a
	// permit, or the waiter.
	// They are 32 at most; of one that was refused each is cut after 1,024 bytes.
	Owners []string
	// Reason is what the viewer has given as a reason, cut after 1600 bytes.
	Reason string
	// Outcome is what has become of it.
	Outcome Outcome
	// Detail is why it was not done, or which clients were notified that it was. "" for
	// OutcomeBegun.
	Detail string
}

// attempt returns what a request tries, whose form was parsed.
func (p *Page) attempt(r *http.Request, what Action) *Attempt {
	q := r.URL.Query()
	a := &Attempt{
		At: time.Now().UTC(), Action: what, Remote: r.RemoteAddr, Lock: cmp.Or(q.Get("name"), q.Get("hash")), Reason: r.PostForm.Get("reason"),
	}
	if p.options.User != nil {
		a.User = p.options.User(r)
	}
	return a
}

// bound cuts what a form has that was refused, however much that is.
func (a *Attempt) bound() {
	if len(a.Lock) > linkedName {
		a.Lock = hashOf(a.Lock)
	}
	a.Owners = a.Owners[:min(len(a.Owners), namedHolders)]
	for i, owner := range a.Owners {
		a.Owners[i] = owner[:min(len(owner), linkedOwner)]
	}
	a.Reason = a.Reason[:min(len(a.Reason), reasonSize)]
}

func (p *Page) report(ctx context.Context, a *Attempt) error {
	if p.options.Audit == nil {
		return nil
	}
	return p.options.Audit(context.WithoutCancel(ctx), *a)
}
