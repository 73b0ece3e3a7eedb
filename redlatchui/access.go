package redlatchui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Access is a set of rights. Rights are combined with |.
type Access uint8

const (
	// NoAccess denies all requests with status 403.
	NoAccess Access = 0
	// ReadOnly does not permit any action.
	ReadOnly Access = 1
	// MayUnlock adds the action "unlock", which releases a lock for dead holders, or a permit of a semaphore. A
	// holder that renews its lease, or that the form does not name, keeps the lock.
	MayUnlock = ReadOnly | 1<<1
	// MayEvict adds the actions "evict" and "evict-all-dead", which evict one or all dead waiters from
	// the queue of a fair lock. A waiter with a subscriber is not evicted.
	MayEvict = ReadOnly | 1<<2
	// FullAccess grants all actions, including those of later versions.
	FullAccess Access = 0xff
)

var (
	errNoAccess = errors.New("you are not allowed to view this page")
	errNoRight  = errors.New("you are not allowed to perform this action")
)

func (a Access) may(right Access) bool { return a&right == right }

// needs returns the reason why a request that needs the given right is denied, or nil.
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
	if o.Access == nil {
		return ReadOnly
	}
	return o.Access(r)
}

type accessKey struct{}

func accessOf(r *http.Request) Access {
	a, _ := r.Context().Value(accessKey{}).(Access)
	return a
}

// admit denies requests from viewers without access. Actions check rights themselves so that attempts are audited.
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

// Values of Attempt.Action and Attempt.Outcome.
const (
	actionUnlock   = "unlock"
	actionEvict    = "evict"
	actionEvictAll = "evict-all-dead"
	outcomeDenied  = "denied"
	outcomeBegun   = "begun"
	outcomeDone    = "done"
	outcomeRefused = "refused"
	outcomeFailed  = "failed"
)

// Attempt is an action that a viewer requested. Lock, Owners, Reason and Remote are untrusted and
// must be escaped.
type Attempt struct {
	// At is when the form was received, in UTC.
	At time.Time
	// Action is "unlock", "evict" or "evict-all-dead".
	Action string
	// User is the result of Options.User.
	User string
	// Remote is the address of the client or its proxy.
	Remote string
	// Lock is the lock's name on the server. If nothing was done, it may be the SHA-256 hash of a
	// name that is longer than 1,024 bytes.
	Lock string
	// Owners lists at most 32 owners in the form, or those that were evicted. If the action was refused,
	// each owner is cut to 1,024 bytes.
	Owners []string
	// Reason is the viewer's reason, cut to 1,600 bytes.
	Reason string
	// Outcome is one of
	//   - "denied": the viewer lacks the right
	//   - "begun": nothing has been sent to Redis yet
	//   - "done": Redis did it
	//   - "refused": nothing was done, because the holder or waiter is alive, the lock has changed hands,
	//     or the form was incomplete
	//   - "failed": Redis did not do it, or only some of it, or it is unknown whether it did
	Outcome string
	// Detail is the reason why the action was not done, or lists the notified clients. For evict-all-dead, it begins
	// with the number of evicted waiters.
	Detail string
}

func (p *Page) attempt(r *http.Request, what string) *Attempt {
	q := r.URL.Query()
	a := &Attempt{
		At: time.Now().UTC(), Action: what, Remote: r.RemoteAddr, Lock: cmp.Or(q.Get("name"), q.Get("hash")), Reason: r.PostForm.Get("reason"),
	}
	if p.options.User != nil {
		a.User = p.options.User(r)
	}
	return a
}

// bounded returns a copy with limited lengths.
func (a *Attempt) bounded() *Attempt {
	b := *a
	if len(b.Lock) > linkedName {
		b.Lock = hashOf(b.Lock)
	}
	b.Owners = slices.Clone(top(b.Owners, namedHolders))
	for i, owner := range b.Owners {
		b.Owners[i] = owner[:min(len(owner), linkedOwner)]
	}
	b.Reason = b.Reason[:min(len(b.Reason), reasonSize)]
	return &b
}

func (p *Page) report(ctx context.Context, a *Attempt) error {
	if p.options.Audit == nil {
		return nil
	}
	return p.options.Audit(context.WithoutCancel(ctx), *a)
}

// policy allows only the page's own styles, script and stream.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cache-Control":                "no-store",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin", // otherwise, browsers would also hide the origin of the page's own forms
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
}

var local = []string{"localhost", "127.0.0.1", "::1"}

func guard(hosts []string, next http.Handler) http.Handler {
	allowed := slices.Clone(local)
	for _, h := range hosts {
		allowed = append(allowed, sanitize.Host(h))
	}
	forms := http.NewCrossOriginProtection()
	forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		bare(w, http.StatusForbidden, "Cross-site form submissions are rejected. A proxy in front must forward the Host header.")
	}))
	next = forms.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !slices.Contains(allowed, sanitize.Host(r.Host)):
			bare(w, http.StatusMisdirectedRequest, "This page is not served under that host name. Add it with --host or Options.Hosts.")
		case isForeign(r):
			bare(w, http.StatusForbidden, "Other sites can only link to this page.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isForeign reports whether a page from another site made the request. Links do not count.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}
