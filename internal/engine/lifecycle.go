package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
)

// Lifecycle is an engine's end, and the work that it waits for.
//
//	open ──refuse──▶ closing: nothing new begins, waiters leave
//	                    │ open work is over, or took too long
//	                    ▼
//	                 closed: background work stops where it is
type Lifecycle struct {
	closing context.Context    //nolint:containedctx // ends first
	refuse  context.CancelFunc // ends closing
	running context.Context    //nolint:containedctx // ends last
	end     context.CancelFunc // ends running
	open    inFlight           // users' calls, calls that were left, calls in doubt

	work     sync.WaitGroup
	spawning sync.Mutex // guards closed: no goroutine begins after Close waits
	closed   bool
}

func (l *Lifecycle) init() {
	l.running, l.end = context.WithCancel(context.Background())
	l.closing, l.refuse = context.WithCancel(context.Background())
	l.open.zero = make(chan struct{}, 1)
}

// Closing is closed when the client begins to close.
func (l *Lifecycle) Closing() <-chan struct{} { return l.closing.Done() }

// IsClosing reports whether the client has begun to close.
func (l *Lifecycle) IsClosing() bool { return l.closing.Err() != nil }

// Open returns a context that ends with ctx, and when the client begins to close.
func (l *Lifecycle) Open(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// Enter counts a user's call in, unless the client is closing. Each Enter that returned nil
// needs a [Lifecycle.Leave].
func (l *Lifecycle) Enter() error {
	l.Join()
	if l.IsClosing() {
		l.Leave()
		return ErrClosed
	}
	return nil
}

// Join counts work in that may run while the client closes.
func (l *Lifecycle) Join() { l.open.add(1) }

// Leave counts work out.
func (l *Lifecycle) Leave() { l.open.add(-1) }

// Go runs f on a goroutine that Close waits for. It returns false, and f does not run, when
// the client is closed. f must end soon.
func (l *Lifecycle) Go(f func()) bool {
	l.spawning.Lock()
	defer l.spawning.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

// Sleep pauses for d. It returns false when ctx ended or the client closes.
func (l *Lifecycle) Sleep(ctx context.Context, d time.Duration) bool {
	ctx, cancel := l.Open(ctx)
	defer cancel()
	return clock.Sleep(ctx, d)
}

// Wait pauses for d, also while the client closes. It returns false when the client is
// closed.
func (l *Lifecycle) Wait(d time.Duration) bool { return clock.Sleep(l.running, d) }

// finish ends the waiting for what is open: no more goroutines begin.
func (l *Lifecycle) finish(ctx context.Context) {
	l.open.wait(ctx)
	l.end()
	l.spawning.Lock()
	l.closed = true
	l.spawning.Unlock()
}

// inFlight counts work that Close waits for. Unlike a WaitGroup it can be waited
// for with a context, and counted up while a caller waits.
type inFlight struct {
	n       atomic.Int64
	waiting atomic.Bool
	zero    chan struct{} // one slot: n was zero while a caller waited
}

func (t *inFlight) add(n int64) {
	if t.n.Add(n) == 0 && t.waiting.Load() {
		select {
		case t.zero <- struct{}{}:
		default:
		}
	}
}

// wait returns when the inFlight is zero or ctx ends. One waiter at a time.
func (t *inFlight) wait(ctx context.Context) {
	t.waiting.Store(true)
	defer t.waiting.Store(false)
	for t.n.Load() != 0 {
		select {
		case <-t.zero:
		case <-ctx.Done():
			return
		}
	}
}
