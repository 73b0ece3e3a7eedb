package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
)

// Lifecycle tracks the end of an engine: open, closing (new calls are rejected, waits end) and
// closed (background work stops).
type Lifecycle struct {
	closing context.Context    //nolint:containedctx // ends first
	refuse  context.CancelFunc // ends closing
	running context.Context    //nolint:containedctx // ends last
	end     context.CancelFunc // ends running

	inFlight atomic.Int64  // users' calls, abandoned calls, calls in doubt
	draining atomic.Bool   // finish waits until inFlight is zero
	idle     chan struct{} // one slot: inFlight was zero while draining

	work     sync.WaitGroup
	spawning sync.Mutex // guards closed: no goroutine begins after work.Wait
	closed   bool
}

func (l *Lifecycle) init() {
	l.running, l.end = context.WithCancel(context.Background())
	l.closing, l.refuse = context.WithCancel(context.Background())
	l.idle = make(chan struct{}, 1)
}

// Closing returns a channel that is closed when the client begins to close.
func (l *Lifecycle) Closing() <-chan struct{} { return l.closing.Done() }

// IsClosing reports whether the client has begun to close.
func (l *Lifecycle) IsClosing() bool { return l.closing.Err() != nil }

// Open returns a context that ends with ctx or when the client begins to close.
func (l *Lifecycle) Open(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// Enter begins a user's call, unless the client is closing. If it returns nil, the caller must
// call [Lifecycle.Leave].
func (l *Lifecycle) Enter() error {
	l.Join()
	if l.IsClosing() {
		l.Leave()
		return ErrClosed
	}
	return nil
}

// Join begins work that may run while the client closes. Leave ends it.
func (l *Lifecycle) Join() { l.inFlight.Add(1) }

// Leave ends what Enter or Join began.
func (l *Lifecycle) Leave() {
	if l.inFlight.Add(-1) == 0 && l.draining.Load() {
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

// Go runs f, which must end soon, on a goroutine that Close waits for. It returns false, without
// running f, if the client is closed.
func (l *Lifecycle) Go(f func()) bool {
	l.spawning.Lock()
	defer l.spawning.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

// Sleep sleeps for d. It returns false if ctx ended or the client closes.
func (l *Lifecycle) Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-l.Closing():
		return false
	}
}

// Wait sleeps for d, also while the client closes. It returns false if the client is closed.
func (l *Lifecycle) Wait(d time.Duration) bool { return clock.Sleep(l.running, d) }

// finish waits for open work until ctx ends. Then no more goroutines begin.
func (l *Lifecycle) finish(ctx context.Context) {
	l.drain(ctx)
	l.end()
	l.spawning.Lock()
	l.closed = true
	l.spawning.Unlock()
}

// drain waits until nothing is in flight, or ctx ends. Unlike a WaitGroup, it lets work begin
// meanwhile.
func (l *Lifecycle) drain(ctx context.Context) {
	l.draining.Store(true)
	defer l.draining.Store(false)
	for l.inFlight.Load() != 0 {
		select {
		case <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}
