package watchdog

import (
	"container/heap"
	"time"
)

// lookout bounds the sleep while there are leases, so that a suspended machine
// notices soon after it wakes: its timers stood still with the monotonic clock.
const lookout = time.Second

// rechecks is the least time from one renewal of all leases, on account of a doubt, to
// the next: connections may come and go.
const rechecks = time.Second

// tick does what is due at now and returns when to look again.
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
	for _, batch := range w.batches(due) {
		w.renew(batch)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(now)
	return w.armed
}

// arm sets when to look again, mu held. Leases that are gone as soon as they come do
// not wake the goroutine each: it looks again for those that come next.
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

// suspect has all leases renewed soon, for a doubt that came up at now.
func (w *Loop) suspect(now time.Time) {
	next := w.await()
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

// hasten makes all leases due that have not been confirmed since now.
func (w *Loop) hasten(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubted = now
	for _, l := range w.sched {
		l.hasten(now)
	}
	heap.Init(&w.sched)
}

// tell lets the holder of a lease that is over know.
func (w *Loop) tell(l *Lease, now time.Time) {
	if l.Over(now) == EndMax {
		l.Holder.LeaseLost(EndMax)
		w.log("redlatch: lock held for too long, it is not renewed any more",
			"lock", l.Key, "owner", l.Owner, "max", l.Max)
		return
	}
	l.Holder.LeaseLost(EndLease)
	args := []any{"lock", l.Key, "owner", l.Owner, "lease", l.TTL, "fixed", l.Fixed}
	if err := l.Failure(); err != nil {
		args = append(args, "error", err)
	}
	w.log("redlatch: lock lost: the lease was not renewed in time", args...)
}

// jumped reports whether the wall clock has run ahead of the monotonic one since
// the last tick.
func (w *Loop) jumped(now time.Time) bool {
	last := w.last
	w.last = now
	return !last.IsZero() && ranAhead(now.Round(0).Sub(last.Round(0)), now.Sub(last))
}

func ranAhead(wall, mono time.Duration) bool { return wall-mono > 20*time.Millisecond }

// sweep brings leases that have ended by the wall clock to the front.
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

// collect takes the leases that are over out of the schedule, and marks those
// to be renewed. When one is due, those due soon come along, so that locks taken
// one after the other share a script.
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
			// Nothing to do before the deadline.
			l.next = now.Add(max(time.Millisecond, l.Ends().Sub(now)))
			heap.Fix(&w.sched, l.index)
		default:
			return over, due
		}
	}
	return over, due
}

func (l *Lease) renewable() bool { return l.confirmed() && !l.pending }

// early is how much sooner than due a lease may be renewed to share a script. A
// retry keeps its pause.
func (l *Lease) early() time.Duration {
	if l.retry > 0 {
		return 0
	}
	return l.counts() / 30
}

// batches cuts the leases into scripts: one group each, BatchSize at most.
func (w *Loop) batches(due []*Lease) [][]*Lease {
	if len(due) == 0 {
		return nil
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
	var out [][]*Lease
	for _, ls := range groups {
		for len(ls) > BatchSize {
			out = append(out, ls[:BatchSize:BatchSize])
			ls = ls[BatchSize:]
		}
		out = append(out, ls)
	}
	return out
}

// renew starts one renewal script. The deadline counts from here.
func (w *Loop) renew(batch []*Lease) {
	sent := time.Now()
	w.cfg.Renew(batch, func(held []bool, err error) {
		w.mu.Lock()
		w.results = append(w.results, result{batch, sent, held, err})
		w.mu.Unlock()
		w.signal()
	})
}

// settle takes the results of renewals in.
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
		w.log("redlatch: lock lost: the server no longer has it",
			"lock", l.Key, "owner", l.Owner, "connection_was_lost", end == EndForgotten)
	}
	for _, r := range results {
		if r.err != nil && !behind { // lines that say the same do not heap up
			w.log("redlatch: renewal failed, will be tried again",
				"locks", len(r.batch), "first", r.batch[0].Key, "error", r.err)
		}
	}
}

// apply moves each lease of a result on, mu held, and returns those that the
// server no longer has.
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

// reschedule sets when to look at the lease again, at its deadline at the latest.
func (w *Loop) reschedule(l *Lease, at time.Time) {
	l.next = at
	if end := l.Ends(); end.Before(at) {
		l.next = end
	}
	heap.Fix(&w.sched, l.index)
}
