package redlatchui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	formSize, reasonSize = 64 << 10, 4 * 400 // 400 characters
	actsFor              = 90 * time.Second
)

var (
	errForm     = errors.New("incomplete form: no changes were made")
	errReason   = fmt.Errorf("a reason of at most %d bytes is required. No changes were made", reasonSize)
	errUnstated = errors.New("confirm for each holder that it is dead. No changes were made")
	errOddName  = errors.New("the name is not valid UTF-8: use redlatch unlock or evict with --base64")
	errEnded    = errors.New("the request ended before any change was made")
	errAudit    = errors.New("the audit could not be written: no changes were made")
)

type deed struct {
	name  string
	right Access
	read  func(a *Attempt, form url.Values) error
	// do returns the result as a sentence, even with an error if some of it was done.
	do func(ctx context.Context, t repair.Target, a *Attempt) (done, waiters string, err error)
}

var (
	unlockDeed = deed{actionUnlock, MayUnlock, readUnlock, doUnlock}
	evictDeed  = deed{actionEvict, MayEvict, readEvict, doEvict}

	evictAllDeed = deed{actionEvictAll, MayEvict, func(*Attempt, url.Values) error { return nil }, doEvictAll}
)

type actedPage struct {
	frame
	Name, Link, Done string
	Waiters          string
	Evict            bool
}

func (p *Page) act(d deed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actsFor + time.Minute)) // servers may set one
		r.Body = http.MaxBytesReader(w, r.Body, formSize)
		malformed := r.ParseForm()
		a := p.attempt(r, d.name)
		done, waiters, err := p.try(r, d, a, malformed)
		page := actedPage{frame: p.frame("Not done")}
		switch {
		case isDenied(err), errors.Is(err, errNoName), errors.Is(err, errUnknown), errors.Is(err, errHidden):
			p.fail(w, err)
			return
		case err != nil:
			page.Err = fullSentence(sanitize.WithoutPrefix(textOf(err)))
		}
		if a.Outcome == outcomeDone {
			if accessOf(r).may(MayEvict) {
				waiters, _, page.Evict = strings.Cut(waiters, evictAdvice)
			}
			if page.Title, page.Done = "Done", fullSentence(done); waiters != "" {
				page.Waiters = fullSentence(waiters)
			}
		}
		page.Name, page.Link = board.NameText(a.Lock), lockLink(a.Lock)
		p.show(w, statusOf(err), "acted.html", &page)
	}
}

func (p *Page) try(r *http.Request, d deed, a *Attempt, malformed error) (done, waiters string, err error) {
	var end func()
	if err = p.check(r, d, a, malformed); err == nil {
		end, err = p.acting.begin(a.viewer())
	}
	if err != nil {
		a.Outcome, a.Detail = outcomeRefused, err.Error()
		if isDenied(err) {
			a.Outcome = outcomeDenied
		}
		_ = p.report(r.Context(), a.bounded())
		return "", "", err
	}
	defer end()
	ctx, cancel := context.WithTimeout(r.Context(), actsFor)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	a.Outcome = outcomeBegun
	if err := p.report(ctx, a); err != nil {
		return "", "", fmt.Errorf("%w: %w", errAudit, err)
	}
	done, waiters, err = p.do(ctx, d, a)
	a.Outcome, a.Detail = outcomeOf(err), waiters
	if d.name == actionEvictAll { // Owners is bounded
		a.Detail = strings.TrimSuffix(done+"; "+waiters, "; ")
	}
	if err != nil {
		a.Detail = textOf(err)
	}
	if unwritten := p.report(ctx, a); unwritten != nil {
		err = errors.Join(err, fmt.Errorf("the audit does not contain the outcome: %w", unwritten))
	}
	return done, waiters, err
}

func (p *Page) check(r *http.Request, d deed, a *Attempt, malformed error) error {
	incomplete := d.read(a, r.PostForm) // needed even for the audit of denied attempts
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

func (p *Page) do(ctx context.Context, d deed, a *Attempt) (done, waiters string, err error) {
	target, err := p.source.Target(ctx)
	if err != nil {
		return "", "", err
	}
	done, waiters, err = d.do(ctx, target, a)
	if outcomeOf(err) == outcomeFailed && ctx.Err() == nil {
		err = p.source.Problem(err)
	}
	if err != nil && done != "" {
		err = errors.New(done + ", then: " + sanitize.WithoutPrefix(textOf(err))) // even a refusal came too late
	}
	return done, waiters, err
}

func outcomeOf(err error) string {
	var refused *repair.Refusal
	switch {
	case err == nil:
		return outcomeDone
	case errors.As(err, &refused):
		return outcomeRefused
	}
	return outcomeFailed
}

// textOf omits the hint.
func textOf(err error) string {
	var refused *repair.Refusal
	if errors.As(err, &refused) {
		return refused.Text
	}
	return err.Error()
}

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

func doUnlock(ctx context.Context, t repair.Target, a *Attempt) (done, waiters string, err error) {
	u := repair.Unlock{Target: t, Name: a.Lock, Dead: a.Owners, Strict: true, For: inspect.RenewalLook}
	f, err := u.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil && (f == nil || !f.Tried):
		return "", "", errEnded
	case err != nil:
		return "", "", err
	case f.IsSemaphore():
		return "the permit was released: " + strings.Join(f.TakenFrom, ", "), f.Heard(), nil
	}
	var losers []string
	for _, h := range f.Losers() {
		losers = append(losers, board.OwnerText(h.Owner, h.Label))
	}
	return "the lock was released for " + strings.Join(losers, ", "), f.Heard(), nil
}

func readEvict(a *Attempt, form url.Values) error {
	owner, err := ownerFrom(form.Get("owner"))
	if err == nil {
		a.Owners = []string{owner}
	}
	return err
}

func doEvict(ctx context.Context, t repair.Target, a *Attempt) (done, waiters string, err error) {
	e := repair.Evict{Target: t, Name: a.Lock, Owner: a.Owners[0], Absent: repair.AbsentFor}
	out, err := e.Run(ctx)
	switch {
	case err != nil:
		return "", "", ended(ctx, err)
	case out.Next == "":
		waiters = "the queue is empty"
	case out.Woken:
		waiters = "the lock is free, and the next waiter was notified: " + sanitize.Word(out.Next)
	default:
		waiters = "the next waiter is " + sanitize.Word(out.Next)
	}
	return "the waiter " + board.OwnerText(a.Owners[0], "") + " was evicted from the queue", waiters, nil
}

func doEvictAll(ctx context.Context, t repair.Target, a *Attempt) (done, waiters string, err error) {
	e := repair.Evict{Target: t, Name: a.Lock, Absent: repair.AbsentFor}
	out, woken, err := e.AllDead(ctx, inspect.LookedAt)
	if len(out) == 0 {
		return "", "", ended(ctx, err) // not nil
	}
	for _, w := range top(out, namedHolders) {
		a.Owners = append(a.Owners, w.Text[:min(len(w.Text), linkedOwner)])
	}
	if woken != "" {
		waiters = "the lock is free, and the next waiter was notified: " + sanitize.Word(woken)
	}
	if len(out) == 1 {
		return "the waiter " + board.OwnerText(out[0].Text, "") + " was evicted from the queue", waiters, err
	}
	return fmt.Sprintf("%d waiters were evicted from the queue", len(out)), waiters, err
}

// ended returns the error of an action that changed nothing, unless that is uncertain.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, redlatch.ErrUncertain) {
		return errEnded
	}
	return err
}

const (
	actsAtOnce, actsOfOne = 32, 4
)

var (
	errActing = fmt.Errorf("you have %d actions in progress: wait for one to finish. No changes were made", actsOfOne)
	errCrowd  = errors.New("too many actions in progress: try again in a minute. No changes were made")
)

// acting is safe for concurrent use.
type acting struct {
	mu     sync.Mutex
	closed bool
	total  int
	of     map[string]int // by viewer
	ended  sync.WaitGroup
}

func (c *acting) begin(viewer string) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, board.ErrClosed
	case c.of[viewer] >= actsOfOne:
		return nil, errActing
	case c.total >= actsAtOnce:
		return nil, errCrowd
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.total++
	c.of[viewer]++
	c.ended.Add(1)
	return func() { c.end(viewer) }, nil
}

func (c *acting) end(viewer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.of[viewer]--; c.of[viewer] == 0 {
		delete(c.of, viewer)
	}
	c.ended.Done()
}

// close rejects new actions and waits for the current ones.
func (c *acting) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.ended.Wait()
}

func (a *Attempt) viewer() string {
	host, _, err := net.SplitHostPort(a.Remote)
	if err != nil {
		host = a.Remote
	}
	return cmp.Or(a.User, host)
}
