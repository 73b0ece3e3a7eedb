package watchdog

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"
)

// BatchSize is the maximum number of locks that one script renews, as in Redisson.
const BatchSize = 100

const (
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
)

// Config configures a Loop.
type Config struct {
	// Renew sends the script that all of the leases share. It passes done an error or, for each lease, whether the owner
	// still holds the lock. done may run on any goroutine.
	Renew func(leases []*Lease, done func(held []bool, err error))
	// Group returns the group of a lease. Each call of the script renews leases of only one group. If Group is nil, all
	// leases form one group.
	Group  func(l *Lease) int
	Margin func(lease time.Duration) time.Duration
	// Doubt, if not nil, returns a channel that is closed when the server may have forgotten locks.
	Doubt  func() <-chan struct{}
	Logger *slog.Logger
}

// Loop renews leases and reports losses. It is safe for concurrent use. Its goroutine starts when the first lease is
// added.
type Loop struct {
	cfg  Config
	wake chan struct{}
	quit chan struct{}
	done sync.WaitGroup

	lines lines

	// Owned by the goroutine.
	last    time.Time
	recheck time.Time // when all leases will be renewed after a doubt, or zero

	// mu guards the fields below. It is not held during calls and callbacks.
	mu      sync.Mutex
	sched   schedule
	oldest  *Lease
	newest  *Lease
	armed   time.Time // when the goroutine will wake, or zero if it is not going to
	added   bool
	results []result
	empty   chan struct{} // closed when the schedule is empty, for Drain
	started bool
	refuses bool
	closed  bool
	cut     int
	doubted time.Time // confirmations by calls sent before this time are doubtful
	doubtAt time.Time // time of the last doubt; doubted is set at the next recheck

	// doubt is closed when the next doubt arises. After New, only the goroutine sets it, and may therefore read it
	// without mu.
	doubt <-chan struct{}
}

type result struct {
	batch []*Lease
	sent  time.Time
	held  []bool
	err   error
}

// New returns a loop without leases.
func New(cfg Config) *Loop {
	w := &Loop{cfg: cfg, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	if cfg.Doubt != nil {
		w.doubt = cfg.Doubt()
	}
	return w
}

// Add starts watching a lease after [Lease.Hold] was called. It returns false if the loop is draining or closed.
func (w *Loop) Add(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.refuses {
		return false
	}
	if !w.started {
		w.started = true
		w.done.Go(w.run)
	}
	l.watched, w.added = true, true
	l.hasten(w.doubted)
	heap.Push(&w.sched, l)
	w.append(l)
	if w.armed.IsZero() || l.next.Before(w.armed) {
		w.armed = l.next
		w.signal()
	}
	return true
}

// Remove removes a lease and reports whether it was watched. If it was, no callback begins after Remove has returned.
// At most one more renewal is sent, if the goroutine was already about to send it; see [Loop.Tried].
func (w *Loop) Remove(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drop(l)
}

// drop is like Remove, but mu must be held.
func (w *Loop) drop(l *Lease) bool {
	if !l.watched {
		return false
	}
	l.watched = false
	heap.Remove(&w.sched, l.index)
	w.unlink(l)
	if len(w.sched) == 0 && w.empty != nil {
		close(w.empty)
		w.empty = nil
	}
	return true
}

// Tried reports whether a renewal was ever started. It may be called even after [Loop.Remove].
func (w *Loop) Tried(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.tried
}

// Doubted reports whether a doubt has arisen since the last confirmation. It may be called even after [Loop.Remove].
func (w *Loop) Doubted(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.sent.Before(w.doubtAt) {
		return true
	}
	select {
	case <-w.doubt: // the goroutine has not handled it yet
		return true
	default:
		return false
	}
}

// Cut returns how many leases Close ended.
func (w *Loop) Cut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// Len returns the number of watched leases.
func (w *Loop) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sched)
}

// Oldest returns when the oldest watched lease began, or zero if no lease is watched.
func (w *Loop) Oldest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.oldest == nil {
		return time.Time{}
	}
	return w.oldest.began
}

// All returns the watched leases in the order in which they were added.
func (w *Loop) All() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*Lease, 0, len(w.sched))
	for l := w.oldest; l != nil; l = l.newer {
		all = append(all, l)
	}
	return all
}

func (w *Loop) append(l *Lease) {
	if l.older = w.newest; l.older != nil {
		l.older.newer = l
	} else {
		w.oldest = l
	}
	w.newest = l
}

func (w *Loop) unlink(l *Lease) {
	if l.older != nil {
		l.older.newer = l.newer
	} else {
		w.oldest = l.newer
	}
	if l.newer != nil {
		l.newer.older = l.older
	} else {
		w.newest = l.older
	}
	l.older, l.newer = nil, nil
}

// Drain rejects new leases and waits until no lease is watched or ctx ends.
func (w *Loop) Drain(ctx context.Context) {
	w.mu.Lock()
	w.refuses = true
	if len(w.sched) == 0 {
		w.mu.Unlock()
		return
	}
	if w.empty == nil {
		w.empty = make(chan struct{})
	}
	empty := w.empty
	w.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}

// Close ends the loop and waits for its goroutine. Watched leases end with EndClosed.
func (w *Loop) Close() {
	w.mu.Lock()
	leases := make([]*Lease, 0, len(w.sched))
	for len(w.sched) > 0 {
		l := w.sched[0]
		w.drop(l)
		leases = append(leases, l)
	}
	w.cut += len(leases)
	if !w.closed {
		w.closed = true
		close(w.quit)
	}
	w.mu.Unlock()
	for _, l := range leases {
		l.Holder.LeaseLost(EndClosed)
	}
	w.done.Wait()
}

func (w *Loop) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Loop) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-w.doubt:
			w.suspect(time.Now())
		default:
		}
		w.settle()
		next := w.tick(time.Now())
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-w.wake:
		case <-timer.C:
		case <-w.doubt:
		case <-w.quit:
			return
		}
	}
}

// lines holds log lines until another goroutine writes them, so that a slow logger does not delay renewals.
type lines struct {
	mu      sync.Mutex // not held while a line is written
	waiting []func()
	writing bool
}

// log queues a warning. Only the loop's goroutine may call it.
func (w *Loop) log(text string, args ...any) {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.lines.waiting = append(w.lines.waiting, func() { w.cfg.Logger.Warn(text, args...) })
	if !w.lines.writing {
		w.lines.writing = true
		w.done.Go(w.writeLines)
	}
}

func (w *Loop) isLogging() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.lines.writing
}

func (w *Loop) writeLines() {
	for {
		w.lines.mu.Lock()
		all := w.lines.waiting
		w.lines.waiting, w.lines.writing = nil, len(all) > 0
		w.lines.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, write := range all {
			write()
		}
	}
}
