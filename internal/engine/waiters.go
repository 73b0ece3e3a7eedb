package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/transport"
)

var (
	errTooMany   = errors.New("as many callers wait as WithMaxWaiters allows")
	errNoCounter = errors.New("redlatch: the transport cannot count subscribers")

	// ErrOwnNotCounted says that a count of listeners proves nothing.
	ErrOwnNotCounted = errors.New("the server does not count this client's own listeners")
)

// Waiters has the callers that wait.
type Waiters struct {
	n    atomic.Int64
	most int64 // 0: as many as may come

	mu    sync.Mutex // guards the list
	first *Waiting
}

// Waiting is a caller that waits, for a lock and kind.
type Waiting struct {
	// For which lock and kind.
	Name, Kind string

	prev, next *Waiting
}

// BeginWait counts a caller in that is about to wait. It returns an error when as many wait
// as are allowed. Each that returned nil needs an EndWait; until then w must not be changed.
func (ws *Waiters) BeginWait(w *Waiting) error {
	if n := ws.n.Add(1); ws.most > 0 && n > ws.most {
		ws.n.Add(-1)
		return errTooMany
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.next = ws.first; w.next != nil {
		w.next.prev = w
	}
	ws.first = w
	return nil
}

// EndWait counts a caller out.
func (ws *Waiters) EndWait(w *Waiting) {
	ws.n.Add(-1)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		ws.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// WaitingNow returns the callers that wait, in no order.
func (ws *Waiters) WaitingNow() []Waiting {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var all []Waiting
	for w := ws.first; w != nil; w = w.next {
		all = append(all, Waiting{Name: w.Name, Kind: w.Kind})
	}
	return all
}

// Waiting returns how many callers wait.
func (ws *Waiters) Waiting() int64 { return ws.n.Load() }

// Listeners returns how many connections listen to each of channels, in their
// order, or an error when that cannot be found out. It is [transport.Counter]'s,
// of a transport that is one.
func (e *Engine) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	c, ok := e.Transport.(transport.Counter)
	if !ok {
		return nil, errNoCounter
	}
	return c.Listeners(ctx, channels...)
}

// ProvenListeners is [Engine.Listeners], and listens to the proof channel meanwhile:
// a zero says something only when that one is counted. It takes a command timeout
// at most. The error wraps ErrNotCounted.
func (e *Engine) ProvenListeners(ctx context.Context, proof string, channels ...string) ([]int64, error) {
	ctx, cancel := e.Open(ctx)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, e.Command, fmt.Errorf("no answer within %v", e.Command))
	defer stop()
	counts, err := e.proven(ctx, proof, channels)
	switch {
	case err == nil:
		return counts, nil
	case e.IsClosing():
		err = ErrClosed
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", EndOf(ctx), err) // which says which side did not answer
	}
	return nil, fmt.Errorf("%w: %w", ErrNotCounted, err)
}

func (e *Engine) proven(ctx context.Context, proof string, channels []string) ([]int64, error) {
	sub, err := e.Subscribe(ctx, proof)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	counts, err := e.Listeners(ctx, append([]string{proof}, channels...)...)
	if err != nil {
		return nil, err
	}
	if counts[0] < 1 {
		return nil, ErrOwnNotCounted
	}
	return counts[1:], nil
}
