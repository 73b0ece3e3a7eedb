package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// Header is the request header that has the token.
const Header = "Fencing-Token"

// SetHeader puts a token into the header of a request.
func SetHeader(h http.Header, token int64) { h.Set(Header, strconv.FormatInt(token, 10)) }

// FromHeader returns the token of a request, or ErrNoToken.
func FromHeader(h http.Header) (int64, error) {
	token, err := strconv.ParseInt(h.Get(Header), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w in the header %s: %q", ErrNoToken, Header, h.Get(Header))
	}
	return token, check(token)
}

// Handler is a guard for what one HTTP server has in its own memory or alone writes to. A
// request goes on to Next
//
//   - at once, when its resource has seen no higher token and none with a lower one is being
//     served;
//   - when those with lower tokens have ended, which are waited for: they began before it;
//   - not at all, when a higher token has been seen.
//
// Those that are refused are answered by 412 Precondition Failed, and by 428 Precondition
// Required without a token. What it has seen is in memory: where the server can be started
// anew, or there are several, check at the database too, with the token that [FromHeader]
// gives. It is safe for concurrent use, and must not be copied. It remembers each resource for
// as long as it lives.
type Handler struct {
	// Next serves what is accepted.
	Next http.Handler
	// Resource names what a request writes to. Default: the path of its URL.
	Resource func(r *http.Request) string

	mu        sync.Mutex // guards resources and what they point to; not held while Next runs
	resources map[string]*resource
}

// resource is what is known of one.
type resource struct {
	highest int64
	serving map[int64]int // requests by their tokens
	changed chan struct{} // closed when one has ended
}

// ServeHTTP is part of http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	if h.Resource != nil {
		name = h.Resource(r)
	}
	token, err := FromHeader(r.Header)
	if err != nil {
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
		return
	}
	leave, err := h.enter(r.Context(), name, token)
	switch {
	case errors.Is(err, ErrLate):
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case err != nil: // the client has gone
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		defer leave()
		h.Next.ServeHTTP(w, r)
	}
}

// enter waits until no request with a lower token is served. The returned function ends this
// one.
func (h *Handler) enter(ctx context.Context, name string, token int64) (leave func(), err error) {
	for {
		changed, err := h.tryEnter(name, token)
		if err != nil {
			return nil, err
		}
		if changed == nil {
			return func() { h.leave(name, token) }, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryEnter counts a request in, or returns what to wait for.
func (h *Handler) tryEnter(name string, token int64) (changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.resources == nil {
		h.resources = map[string]*resource{}
	}
	r := h.resources[name]
	if r == nil {
		r = &resource{serving: map[int64]int{}, changed: make(chan struct{})}
		h.resources[name] = r
	}
	if token < r.highest {
		return nil, &LateError{Resource: name, Token: token, Highest: r.highest}
	}
	r.highest = token // from now on lower ones are late
	for other := range r.serving {
		if other < token {
			return r.changed, nil
		}
	}
	r.serving[token]++
	return nil, nil //nolint:nilnil // nothing to wait for
}

func (h *Handler) leave(name string, token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.resources[name]
	if r.serving[token]--; r.serving[token] == 0 {
		delete(r.serving, token)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}
