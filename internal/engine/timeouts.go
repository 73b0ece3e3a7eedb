package engine

import (
	"sync"
	"time"
)

// timeouts wakes attempts when they time out or the client closes. They share one timer, which
// is set only if it is missing or too late: one for each call would cost more than the rest of
// the call.
type timeouts struct {
	mu    sync.Mutex // guards the fields below; held briefly
	first *Attempt   // in no particular order
	waits int
	timer *time.Timer
	due   time.Duration // when the timer fires, by elapsed; 0: never
}

// epoch is the zero of elapsed.
var epoch = time.Now()

// elapsed is the clock of timeouts: cheaper to compare than a time.Time.
func elapsed() time.Duration { return time.Since(epoch) }

// add wakes a after d, and when the client closes if a.closes. Each add needs a remove.
func (t *timeouts) add(a *Attempt, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.alarmed = false
	if a.closes && a.engine.IsClosing() { // close wakes those listed before
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

// remove ends what add began, and reports whether an alarm was sent: then it is among the next
// two values that a receives.
func (t *timeouts) remove(a *Attempt) (alarmed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.listed {
		t.unlink(a)
	}
	return a.alarmed
}

// unlink removes a from the list, mu held.
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

// count returns the number of attempts that wait for a reply.
func (t *timeouts) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}

// arm sets the timer unless it fires by due, mu held.
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

// among is how late a timeout may be for each waiting attempt, which bounds the share of time
// spent scanning them.
const among = 250 * time.Nanosecond

// fire wakes attempts that have timed out. A timer that is moved while it fires may fire once
// too often, which is harmless.
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

// close wakes attempts that end with the client, now and later.
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

// alarm wakes an attempt that is no longer listed. The channel has room.
func (a *Attempt) alarm() {
	a.alarmed = true
	a.result <- outcome{alarm: true}
	if a.leads.Load() {
		a.engine.leader.Interrupt(&a.Call)
	}
}
