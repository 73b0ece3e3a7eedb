// Package observer_test holds what redlatch.Observer and Client.Stats promise, for every
// kind of lock. It has tests only.
package observer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far more than anything takes that is waited for.
const soon = 20 * time.Second

// mark is the key of what a caller, or the witness, has left in a context.
type mark struct{ by string }

// seen is an event and what its context said.
type seen struct {
	event  any
	caller any   // the caller's mark
	chain  any   // the witness's mark, of the event that this one follows
	err    error // the context's
}

// witness collects what is reported to an observer, and marks the contexts that it returns.
type witness struct {
	do func(event any) // not nil: runs for each event

	mu     sync.Mutex
	all    []seen
	marked int
}

func (w *witness) observer() redlatch.Observer { return observed.By(w.see) }

func (w *witness) see(ctx context.Context, e any) context.Context {
	if w.do != nil {
		w.do(e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, seen{e, ctx.Value(mark{"caller"}), ctx.Value(mark{"witness"}), ctx.Err()})
	w.marked++
	return context.WithValue(ctx, mark{"witness"}, fmt.Sprintf("%T %d", e, w.marked))
}

// since returns what was seen and forgets it.
func (w *witness) since() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// find waits for the event of a type, and returns it and all that was seen until then.
func find[E any](t *testing.T, w *witness, is func(E) bool) (E, []seen) {
	t.Helper()
	var found E
	var all []seen
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.all {
			if e, ok := s.event.(E); ok && (is == nil || is(e)) {
				found, all = e, append([]seen{}, w.all...)
				return true
			}
		}
		return false
	}, soon, time.Millisecond, "no %T", found)
	return found, all
}

// open connects a client to a server.
func open(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// watched connects a client that a witness observes.
func watched(t *testing.T, opts ...redlatch.Option) (*redistest.Server, *redlatch.Client, *witness) {
	t.Helper()
	srv, w := redistest.Shared(t), &witness{}
	return srv, open(t, srv.URL(), append(opts, redlatch.WithObserver(w.observer()))...), w
}
