package redlatchui

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	// formSize is how many bytes a form has at most, reasonSize a reason in it.
	formSize, reasonSize = 64 << 10, 500
	// actsFor bounds an action: a look takes up to inspect.RenewalLook.
	actsFor = 90 * time.Second
	// actsAtOnce is how many actions may be under way.
	actsAtOnce = 8
)

// Why an action is not begun.
var (
	errForm     = errors.New("the form is not complete, so nothing was done")
	errReason   = fmt.Errorf("give a reason, of %d bytes at most. Nothing was done", reasonSize)
	errUnstated = errors.New("state of each holder that it is dead. Nothing was done")
	errOddName  = errors.New("the name is not valid UTF-8: redlatch unlock and evict take it with --base64")
	errActing   = errors.New("too many actions are under way, so nothing was done")
	errEnded    = errors.New("the request has ended before anything was done")
	errAudit    = errors.New("the audit was not written, so nothing was done")
)

// deed is an action: its right, its form, and what it does.
type deed struct {
	name  Action
	right Access
	// read takes what the form has besides the reason.
	read func(a *Attempt, form url.Values) error
	// do does it, and returns what is said of it.
	do func(ctx context.Context, t repair.Target, a *Attempt) (string, error)
}

var (
	unlockDeed = deed{ActionUnlock, MayUnlock, readUnlock, doUnlock}
	evictDeed  = deed{ActionEvict, MayEvict, readEvict, doEvict}
)

// actedPage says what has become of an action.
type actedPage struct {
	frame
	Name, Link, Done string
}

// act serves the form of an action that was sent.
func (p *Page) act(d deed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actsFor + time.Minute)) // a server may have none
		r.Body = http.MaxBytesReader(w, r.Body, formSize)
		malformed := r.ParseForm()
		a := p.attempt(r, d.name)
		said, err := p.try(r, d, a, malformed)
		page := actedPage{frame: p.frame("Not done", "")}
		switch {
		case isDenied(err), errors.Is(err, errNoName), errors.Is(err, errUnknown), errors.Is(err, errHidden):
			p.fail(w, err)
			return
		case err != nil:
			page.Err = fullSentence(sanitize.WithoutPrefix(textOf(err)))
		}
		if a.Outcome == OutcomeDone {
			page.Title, page.Done = "Done", fullSentence(said)
		}
		page.Name, page.Link = nameText(a.Lock), lockLink(a.Lock)
		p.showWith(w, statusOf(err), "acted.html", &page)
	}
}

// try checks an attempt, does it, and reports it to the audit. It returns what is said of it.
func (p *Page) try(r *http.Request, d deed, a *Attempt, malformed error) (string, error) {
	if err := p.check(r, d, a, malformed); err != nil {
		a.Outcome, a.Detail = OutcomeRefused, err.Error()
		if isDenied(err) {
			a.Outcome = OutcomeDenied
		}
		_ = p.report(r.Context(), a) // nothing was done, whatever the audit says
		return "", err
	}
	select {
	case p.acting <- struct{}{}:
		defer func() { <-p.acting }()
	default:
		a.Outcome, a.Detail = OutcomeRefused, errActing.Error()
		_ = p.report(r.Context(), a) // as above
		return "", errActing
	}
	ctx, cancel := context.WithTimeout(r.Context(), actsFor)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	a.Outcome = OutcomeBegun
	if err := p.report(ctx, a); err != nil {
		return "", fmt.Errorf("%w: %w", errAudit, err)
	}
	said, err := p.do(ctx, d, a)
	a.Outcome, a.Detail = outcomeOf(err), said
	if err != nil {
		a.Detail = textOf(err)
	}
	if unwritten := p.report(ctx, a); unwritten != nil {
		err = errors.Join(err, fmt.Errorf("the outcome is not in the audit: %w", unwritten))
	}
	return said, err
}

// check says why an attempt is not begun.
func (p *Page) check(r *http.Request, d deed, a *Attempt, malformed error) error {
	incomplete := d.read(a, r.PostForm) // also for the audit of what is denied
	if err := accessOf(r).needs(d.right); err != nil {
		return err
	}
	name, err := p.named(r)
	if err != nil {
		return err
	}
	a.Lock = name
	switch {
	case limits.Name(name) != nil:
		return errOddName
	case malformed != nil:
		return errForm
	case strings.TrimSpace(a.Reason) == "" || len(a.Reason) > reasonSize:
		return errReason
	}
	return incomplete
}

// do does it.
func (p *Page) do(ctx context.Context, d deed, a *Attempt) (string, error) {
	target, err := p.source.Target(ctx)
	if err != nil {
		return "", err
	}
	said, err := d.do(ctx, target, a)
	if outcomeOf(err) != OutcomeFailed || ctx.Err() != nil {
		return said, err
	}
	return "", p.source.Problem(err)
}

func outcomeOf(err error) Outcome {
	var refused *repair.Refusal
	switch {
	case err == nil:
		return OutcomeDone
	case errors.As(err, &refused):
		return OutcomeRefused
	}
	return OutcomeFailed
}

// textOf leaves out what is typed for the command line.
func textOf(err error) string {
	var refused *repair.Refusal
	if errors.As(err, &refused) {
		return refused.Text
	}
	return err.Error()
}

// readUnlock takes the holders that the form was made for. Each is stated to be dead.
func readUnlock(a *Attempt, form url.Values) error {
	a.Owners = form["holder"]
	switch {
	case len(a.Owners) == 0 || len(a.Owners) > namedHolders:
		return errForm
	case !slices.Equal(form["dead"], a.Owners):
		return errUnstated
	}
	return nil
}

func doUnlock(ctx context.Context, t repair.Target, a *Attempt) (string, error) {
	u := repair.Unlock{Target: t, Name: a.Lock, Dead: a.Owners, Shown: a.Owners, For: inspect.RenewalLook}
	f, err := u.Run(ctx)
	switch {
	case err == nil:
		return f.Heard(), nil
	case ctx.Err() != nil && (f == nil || !f.Tried):
		return "", errEnded
	}
	return "", err
}

// readEvict takes the waiter.
func readEvict(a *Attempt, form url.Values) error {
	owner, err := ownerFrom(form.Get("owner"))
	if err != nil {
		return err
	}
	a.Owners = []string{owner}
	return nil
}

func doEvict(ctx context.Context, t repair.Target, a *Attempt) (string, error) {
	e := repair.Evict{Client: t.Client, Name: a.Lock, Owner: a.Owners[0], Absent: repair.AbsentFor}
	out, err := e.Run(ctx)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, redlatch.ErrUncertain):
		return "", errEnded
	case err != nil:
		return "", err
	case out.Next == "":
		return "the queue is empty", nil
	case out.Woken:
		return "the lock is free, and the next in the queue was woken: " + sanitize.Word(out.Next), nil
	}
	return "the next in the queue is " + sanitize.Word(out.Next), nil
}

// ownerParam returns an owner, which may be any bytes, as forms and addresses have it.
func ownerParam(owner string) string { return base64.RawURLEncoding.EncodeToString([]byte(owner)) }

// ownerFrom returns the owner of ownerParam.
func ownerFrom(param string) (string, error) {
	owner, err := base64.RawURLEncoding.DecodeString(param)
	if err != nil || len(owner) == 0 {
		return "", errForm
	}
	return string(owner), nil
}
