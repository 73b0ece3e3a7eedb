package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

const header = "Fencing-Token"

// SetHeader sets a request's token in the header Fencing-Token.
func SetHeader(h http.Header, token int64) { h.Set(header, strconv.FormatInt(token, 10)) }

// FromHeader returns the token of a request, or [ErrNoToken].
func FromHeader(h http.Header) (int64, error) {
	token, err := strconv.ParseInt(h.Get(header), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w in the header %s: %q", ErrNoToken, header, h.Get(header))
	}
	return token, check(token)
}

// Handler guards data that only one HTTP server writes. A request waits until requests with lower
// tokens for the same resource have ended, and then reaches Next. If a higher token has been seen,
// the request is rejected with 412 Precondition Failed; without a token, it is rejected with 428
// Precondition Required.
//
// The highest tokens are kept in memory. If the server can restart or there are several servers,
// also check the token from [FromHeader] at the database. A Handler is safe for concurrent use and
// must not be copied.
type Handler struct {
	// Next serves accepted requests.
	Next http.Handler
	// Resource names the resource of a request. The default is the path of its URL.
	Resource func(r *http.Request) string

	mu        sync.Mutex // guards resources and their contents; not held while Next runs
	resources map[string]*resource
}

type resource struct {
	highest int64
	serving map[int64]int // number of requests by token
	changed chan struct{} // closed when a request ends
}

// ServeHTTP checks the token and calls Next.
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
	case err != nil: // the client disconnected
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		defer leave()
		h.Next.ServeHTTP(w, r)
	}
}

// enter waits until no request with a lower token is running.
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
	r.highest = token // from now on, lower tokens are late
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
