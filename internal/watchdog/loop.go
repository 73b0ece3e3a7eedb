package watchdog

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"
)

// BatchSize is how many locks one renewal script covers, as in Redisson.
const BatchSize = 100

// retry pauses between failed renewals of a lease.
const (
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
)

// Config says what a loop works with. Every field is required but those that may be nil.
type Config struct {
	// Renew sends one renewal script for the batch's leases, which share it, and passes on its
	// reply: an error, or for each lease whether the server still has it. done
	// may run on any goroutine.
	Renew func(leases []*Lease, done func(held []bool, err error))
	// Group puts leases whose keys may be in one script into one group. Nil: all may.
	Group func(l *Lease) int
	// Margin returns the loss margin of a lease.
	Margin func(lease time.Duration) time.Duration
	// Doubt, if not nil, returns a channel that is closed when the server may not have
	// the locks any more that it said it has: a connection was lost, another server is
	// the master. All leases are renewed then, without waiting for their time.
	Doubt func() <-chan struct{}
	// Logger hears of failed renewals and losses.
	Logger *slog.Logger
}

// Loop renews leases and declares losses. All methods are safe for concurrent
// use. A loop starts its goroutine with the first lease.
type Loop struct {
	cfg  Config
	wake chan struct{} // one slot: look at the schedule or the results again
	quit chan struct{}
	done sync.WaitGroup

	lines lines // for the log

	// Of the goroutine.
	last    time.Time // when it ticked last
	recheck time.Time // when all leases are to be renewed at once; zero: never

	// mu guards what follows. It is never held while a call is started or a
	// callback runs.
	mu      sync.Mutex
	sched   schedule
	oldest  *Lease // of those that are watched, in the order in which they came
	newest  *Lease
	armed   time.Time // when the goroutine wakes by itself; zero: not at all
	added   bool      // a lease was, since it woke
	results []result
	empty   chan struct{} // closed when the schedule is empty; nil: no caller waits
	started bool
	refuses bool // Drain has begun
	closed  bool
	cut     int       // leases that Close ended
	doubted time.Time // what the server said to calls sent before is not relied on
	doubtAt time.Time // when the last doubt came up

	// doubt is the next doubt. Set by New, so that none is missed, and then by the goroutine,
	// which alone reads it without mu.
	doubt <-chan struct{}
}

// result is the outcome of one renewal script.
type result struct {
	batch []*Lease
	sent  time.Time
	held  []bool
	err   error
}

// New returns a loop that has nothing to do yet.
func New(cfg Config) *Loop {
	w := &Loop{cfg: cfg, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	w.doubt = w.await()
	return w
}

// heed takes in a doubt that has come up.
func (w *Loop) heed() {
	select {
	case <-w.doubt:
		w.suspect(time.Now())
	default:
	}
}

// await returns what is closed at the next doubt.
func (w *Loop) await() <-chan struct{} {
	if w.cfg.Doubt == nil {
		return nil
	}
	return w.cfg.Doubt()
}

// Add watches a lease whose [Lease.Hold] was called. It returns false when the
// loop is drained or closed.
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

// Remove takes a lease out. When it returns no renewal of the lease will be
// started and none of its callbacks will run, unless one has begun. It
// reports whether the lease was still watched.
func (w *Loop) Remove(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drop(l)
}

// drop is Remove with mu held. The goroutine may wake once for nothing: that is
// cheaper than telling it.
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

// Tried reports whether a renewal of the lease was ever started, or is about to be.
// After [Loop.Remove] that stays as it is.
func (w *Loop) Tried(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.tried
}

// Doubted reports whether there was a doubt since the server confirmed the lease last. It may
// have forgotten the lock then. Also after [Loop.Remove].
func (w *Loop) Doubted(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.sent.Before(w.doubtAt) {
		return true
	}
	select {
	case <-w.doubt: // the goroutine has not taken it in yet
		return true
	default:
		return false
	}
}

// Cut returns how many leases Close has ended.
func (w *Loop) Cut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// Len returns how many leases are watched.
func (w *Loop) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sched)
}

// Oldest returns when the lease that was added first of those that are watched began, the zero
// time when there is none.
func (w *Loop) Oldest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.oldest == nil {
		return time.Time{}
	}
	return w.oldest.began
}

// All returns the leases that are watched, in the order in which they were added.
func (w *Loop) All() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*Lease, 0, len(w.sched))
	for l := w.oldest; l != nil; l = l.newer {
		all = append(all, l)
	}
	return all
}

// append puts a lease behind those that came before, mu held.
func (w *Loop) append(l *Lease) {
	if l.older = w.newest; l.older != nil {
		l.older.newer = l
	} else {
		w.oldest = l
	}
	w.newest = l
}

// unlink takes it out, mu held.
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

// Drain takes no more leases, and waits until none is watched, or ctx ends.
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

// Close ends the loop: every lease still watched ends with EndClosed. It
// waits for the goroutine and may be called more than once.
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

// run is the loop's goroutine. It ends when Close closes quit.
func (w *Loop) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.heed() // before results that came after it
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
		case <-w.doubt: // heed takes it in
		case <-w.quit:
			return
		}
	}
}

// lines are for the log. They are written beside the loop: a logger may be slow, and neither a
// renewal nor the holder of a lease that is over waits for it.
type lines struct {
	mu      sync.Mutex // not held while one is written
	waiting []line
	writing bool // there is a goroutine that writes them
}

type line struct {
	text string
	args []any
}

// log has a warning written. Only the loop's goroutine may call it.
func (w *Loop) log(text string, args ...any) {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.lines.waiting = append(w.lines.waiting, line{text, args})
	if !w.lines.writing {
		w.lines.writing = true
		w.done.Go(w.writeLines)
	}
}

// isLogging reports whether there are lines that are not written yet.
func (w *Loop) isLogging() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.lines.writing
}

// writeLines writes the lines that wait, in order.
func (w *Loop) writeLines() {
	for {
		w.lines.mu.Lock()
		all := w.lines.waiting
		w.lines.waiting, w.lines.writing = nil, len(all) > 0
		w.lines.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, l := range all {
			w.cfg.Logger.Warn(l.text, l.args...)
		}
	}
}
