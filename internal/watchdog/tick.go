package watchdog

import (
	"container/heap"
	"slices"
	"time"
)

// lookout limits how long the goroutine sleeps, because timers stop while the machine is suspended.
const lookout = time.Second

// rechecks is the minimum interval between renewals that doubts cause.
const rechecks = time.Second

func (w *Loop) tick(now time.Time) time.Time {
	if w.jumped(now) {
		w.sweep(now)
	}
	if !w.recheck.IsZero() && !now.Before(w.recheck) {
		w.recheck = time.Time{}
		w.hasten(now)
	}
	over, due := w.collect(now)
	for _, l := range over {
		w.tell(l, now)
	}
	w.renew(due)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(now)
	return w.armed
}

// arm sets when the goroutine will wake. mu must be held.
func (w *Loop) arm(now time.Time) {
	added := w.added
	w.armed, w.added = time.Time{}, false
	switch limit := now.Add(lookout); {
	case len(w.sched) > 0:
		w.armed = w.sched[0].next
		if limit.Before(w.armed) {
			w.armed = limit
		}
		if !w.recheck.IsZero() && w.recheck.Before(w.armed) {
			w.armed = w.recheck
		}
	case added:
		w.armed = limit
	}
}

func (w *Loop) suspect(now time.Time) {
	next := w.cfg.Doubt()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubt, w.doubtAt = next, now
	if !w.recheck.IsZero() {
		return
	}
	w.recheck = w.doubted.Add(rechecks)
	if w.recheck.Before(now) {
		w.recheck = now
	}
}

func (w *Loop) hasten(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubted = now
	for _, l := range w.sched {
		l.hasten(now)
	}
	heap.Init(&w.sched)
}

func (w *Loop) tell(l *Lease, now time.Time) {
	if l.Over(now) == EndMax {
		l.Holder.LeaseLost(EndMax)
		w.log("redlatch: lock held for its maximum time; renewal stopped",
			"lock", l.Key, "owner", l.Owner, "max", l.Max)
		return
	}
	l.Holder.LeaseLost(EndLease)
	args := []any{"lock", l.Key, "owner", l.Owner, "lease", l.TTL, "fixed", l.Fixed}
	if err := l.Failure(); err != nil {
		args = append(args, "error", err)
	}
	if l.Fixed && !now.Before(l.Final()) {
		w.log("redlatch: lock lost: its own lease expired", args...)
		return
	}
	w.log("redlatch: lock lost: the lease was not renewed in time", args...)
}

func (w *Loop) jumped(now time.Time) bool {
	last := w.last
	w.last = now
	return !last.IsZero() && ranAhead(now.Round(0).Sub(last.Round(0)), now.Sub(last))
}

func ranAhead(wall, mono time.Duration) bool { return wall-mono > 20*time.Millisecond }

func (w *Loop) sweep(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.sched {
		if l.Over(now) != 0 {
			l.next = now
		}
	}
	heap.Init(&w.sched)
}

// collect removes the expired leases and marks the leases that must be renewed. Leases that are due soon are renewed
// with them, so that they share a script.
func (w *Loop) collect(now time.Time) (over, due []*Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.sched) > 0 {
		l := w.sched[0]
		switch {
		case l.Over(now) != 0:
			w.drop(l)
			over = append(over, l)
		case l.renewable() && (!l.next.After(now) || len(due) > 0 && !l.next.After(now.Add(l.early()))):
			l.pending, l.tried = true, true
			l.next = l.Ends()
			heap.Fix(&w.sched, l.index)
			due = append(due, l)
		case !l.next.After(now):
			l.next = now.Add(max(time.Millisecond, l.Ends().Sub(now)))
			heap.Fix(&w.sched, l.index)
		default:
			return over, due
		}
	}
	return over, due
}

func (l *Lease) renewable() bool { return l.confirmed() && !l.pending }

func (l *Lease) early() time.Duration {
	if l.retry > 0 {
		return 0
	}
	return l.counts() / 30
}

// renew sends scripts, each for at most BatchSize leases in one group. The new deadlines count from the time when the
// scripts are sent.
func (w *Loop) renew(due []*Lease) {
	if len(due) == 0 {
		return
	}
	type group struct {
		script *Renewal
		keys   int
	}
	groups := map[group][]*Lease{}
	for _, l := range due {
		g := group{script: l.Renewal}
		if w.cfg.Group != nil {
			g.keys = w.cfg.Group(l)
		}
		groups[g] = append(groups[g], l)
	}
	for _, leases := range groups {
		for batch := range slices.Chunk(leases, BatchSize) {
			sent := time.Now()
			w.cfg.Renew(batch, func(held []bool, err error) {
				w.mu.Lock()
				w.results = append(w.results, result{batch, sent, held, err})
				w.mu.Unlock()
				w.signal()
			})
		}
	}
}

func (w *Loop) settle() {
	w.mu.Lock()
	results := w.results
	w.results = nil
	var lost []*Lease
	for _, r := range results {
		lost = append(lost, w.apply(r)...)
	}
	w.mu.Unlock()
	behind := w.isLogging()
	for _, l := range lost {
		end := EndTaken
		if w.Doubted(l) {
			end = EndForgotten
		}
		l.Holder.LeaseLost(end)
		w.log("redlatch: lock lost: no longer on the server",
			"lock", l.Key, "owner", l.Owner, "connection_was_lost", end == EndForgotten)
	}
	for _, r := range results {
		if r.err != nil && !behind { // so that equal lines don't pile up
			w.log("redlatch: renewal failed; will retry",
				"locks", len(r.batch), "first", r.batch[0].Key, "error", r.err)
		}
	}
}

// apply handles a result and returns the lost leases. mu must be held.
func (w *Loop) apply(r result) (lost []*Lease) {
	now := time.Now()
	for i, l := range r.batch {
		l.pending = false
		switch {
		case !l.watched:
		case r.err != nil:
			l.failure.Store(&r.err)
			l.retry = min(max(2*l.retry, retryMin), retryMax, l.counts()/8+time.Millisecond)
			w.reschedule(l, now.Add(l.retry))
		case r.held[i]:
			l.renewed(r.sent, w.cfg.Margin)
			l.failure.Store(nil)
			l.retry, l.sent = 0, r.sent
			l.next = l.following(r.sent)
			l.hasten(w.doubted)
			w.reschedule(l, l.next)
		default:
			w.drop(l)
			lost = append(lost, l)
		}
	}
	return lost
}

func (w *Loop) reschedule(l *Lease, at time.Time) {
	l.next = at
	if end := l.Ends(); end.Before(at) {
		l.next = end
	}
	heap.Fix(&w.sched, l.index)
}
