package engine

import (
	"sync"
	"time"
)

// timeouts tells attempts that their time is over, or that the client closes. They
// share one timer, which is set when it is missing or too late, and so hardly ever: a
// timer for each call costs more than all else that a client does for it.
type timeouts struct {
	mu    sync.Mutex // guards what follows; held for a few instructions only, or while the timer fires
	first *Attempt   // of those that wait, in no order of time
	waits int
	timer *time.Timer
	due   time.Duration // when the timer fires, on the clock of elapsed; 0: not at all
}

// epoch is where elapsed begins. Only differences matter.
var epoch = time.Now()

// elapsed is the clock of timeouts: it is cheaper to compare than a time.Time.
func elapsed() time.Duration { return time.Since(epoch) }

// add sees to it that a is woken when d has passed, and when the client closes if a is
// bound to it. Each add needs a remove.
func (t *timeouts) add(a *Attempt, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.alarmed = false
	if a.closes && a.engine.IsClosing() { // close finds those listed before
		a.alarm()
		return
	}
	a.due = elapsed() + max(d, 0)
	if a.next = t.first; a.next != nil {
		a.next.prev = a
	}
	a.listed, t.first = true, a
	t.waits++
	t.arm(a.due)
}

// remove ends what add began, and reports whether a was woken: then that is the next, or
// the next but one, of what it receives.
func (t *timeouts) remove(a *Attempt) (alarmed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.listed {
		t.unlink(a)
	}
	return a.alarmed
}

// unlink takes a out, mu held.
func (t *timeouts) unlink(a *Attempt) {
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		t.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.prev, a.next, a.listed = nil, nil, false
	t.waits--
}

// count returns how many attempts wait for a reply.
func (t *timeouts) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}

// arm sets the timer unless it fires by due anyway, mu held.
func (t *timeouts) arm(due time.Duration) {
	if t.due != 0 && t.due <= due {
		return
	}
	t.due = due
	in := due - elapsed()
	if t.timer == nil {
		t.timer = time.AfterFunc(in, t.fire)
		return
	}
	t.timer.Reset(in)
}

// among is by how much a timeout may be late for each that waits: so that looking at all
// of them takes a small part of the time, however many there are.
const among = 250 * time.Nanosecond

// fire wakes those whose time is over. A timer that fired while another goroutine moved
// it fires once too often, which does no harm.
func (t *timeouts) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := elapsed()
	t.due = 0
	var next time.Duration
	for a := t.first; a != nil; {
		following := a.next
		switch {
		case a.due <= now:
			t.unlink(a)
			a.alarm()
		case next == 0 || a.due < next:
			next = a.due
		}
		a = following
	}
	if next != 0 {
		t.arm(max(next, now+time.Duration(t.waits)*among))
	}
}

// close wakes those that are bound to the client, now and from now on.
func (t *timeouts) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := t.first; a != nil; {
		following := a.next
		if a.closes {
			t.unlink(a)
			a.alarm()
		}
		a = following
	}
}

// alarm wakes an attempt that is not listed any more. There is room: it was listed once.
func (a *Attempt) alarm() {
	a.alarmed = true
	a.result <- outcome{alarm: true}
	if a.leads.Load() {
		a.engine.leader.Interrupt(&a.Call)
	}
}
