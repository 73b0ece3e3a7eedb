package follow

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// What happened.
const (
	Held     = "held"
	Free     = "free"
	Taken    = "taken"
	Passed   = "passed"
	Released = "released"
	Expired  = "expired"
	Gone     = "gone"
	Entered  = "entered"
	Left     = "left"
	Queued   = "queued"
	Quit     = "quit"
	Woken    = "woken"
)

// Event is something that happened to a lock.
type Event struct {
	// At is when it was seen, Name the lock's.
	At   time.Time
	Name string
	// What is one of the constants.
	What string
	// Owner is the owner that has or had the lock, or waits for it; "" when that is not
	// known. From is the owner that had it before, for Passed.
	Owner, From string
	// Count is how often the owner has entered, "" when it does not hold the lock. Mode is
	// what a read/write lock is held for.
	Count, Mode string
	// Lease is what the lease has left, negative when there is none.
	Lease time.Duration
	// Place is the owner's in the queue, 0 when it has none.
	Place int
	// Queue is how many wait in the queue, Next the first of them.
	Queue int
	Next  string
	// Messages is how many messages there were since the last look.
	Messages int
}

// Lock is a lock that is followed. It is for one goroutine.
type Lock struct {
	// Name is the lock's name.
	Name string

	last     *inspect.Snapshot        // nil before the first look
	counts   map[string]inspect.Count // of the holders at the last look
	received received
	// due is true when the owner was new at a look before which no message had called
	// it: if there is one, it may still be on its way.
	due bool
}

// received are the messages since the last look.
type received struct {
	messages int
	freed    int    // messages that show that the lock was free
	woken    string // the waiter that was woken last
}

// Receive records a message.
func (l *Lock) Receive(m *Message) {
	l.received.messages++
	if m.Owner != "" {
		l.received.woken = m.Owner
	}
	if l.frees(m) {
		l.received.freed++
	}
}

// frees reports whether a message shows that the lock was free since the last look. One to
// all waiters does. One that wakes a single waiter does when that one had the lock then: it
// released it, queued anew, and was woken. Another waiter may not come, and the lock stay
// where it is. A message before the answer of the last look shows nothing new, nor does the
// one that woke the owner that was found there.
func (l *Lock) frees(m *Message) bool {
	switch {
	case l.last != nil && !m.At.After(l.last.Answered):
		return false
	case m.Owner == "":
		return true
	case l.last == nil || m.Owner != firstOwner(l.last):
		return false
	}
	late := l.due
	l.due = false
	return !late
}

// Unseen reports whether there was a message since the last look.
func (l *Lock) Unseen() bool { return l.received.messages > 0 }

// Look takes a look in, and returns what has happened since the one before.
func (l *Lock) Look(now *inspect.Snapshot) []Event {
	before, heard, first := l.last, l.received, l.last == nil
	if first {
		before = &inspect.Snapshot{}
	}
	l.last, l.received, l.counts = now, received{}, countsOf(now.Holders)
	changes := changed(before, now, &heard, first)
	var events []Event
	for _, c := range changes {
		switch c.what {
		case Held, Taken, Passed:
			l.due = heard.woken != c.owner
		}
		e := l.event(c.what, c.owner)
		if c.what == Passed {
			e.From = firstOwner(before)
		}
		events = append(events, e)
	}
	if !first {
		events = append(events, l.queueEvents(before, now, heard.messages > 0)...)
	}
	for i := range events {
		events[i].Messages = heard.messages
	}
	return events
}

// firstOwner returns the first holder, "" for none.
func firstOwner(s *inspect.Snapshot) string {
	if !s.Held() {
		return ""
	}
	return s.Holders[0].Owner
}

// Idle reports whether the lock was free, with an empty queue, when it was last seen.
func (l *Lock) Idle() bool { return l.last == nil || !l.last.Held() && len(l.last.Queue) == 0 }

// queueEvents returns the events of the queue. An owner that is not queued any more may have got
// the lock and released it again between two looks: Quit is reported only when there was
// neither a message nor a new owner. In a long queue only the first places are seen: an
// owner that comes into sight then has not just been queued.
func (l *Lock) queueEvents(before, now *inspect.Snapshot, notified bool) (events []Event) {
	queued := func(queue []admin.Waiter, owner string) bool {
		return slices.ContainsFunc(queue, func(w admin.Waiter) bool { return w.Text == owner })
	}
	cut := before.Waiting > len(before.Queue)
	for i, w := range now.Queue {
		if !cut && !queued(before.Queue, w.Text) {
			e := l.event(Queued, w.Text)
			e.Place = i + 1
			events = append(events, e)
		}
	}
	if notified || firstOwner(now) != firstOwner(before) {
		return events
	}
	for _, w := range before.Queue {
		if !queued(now.Queue, w.Text) {
			events = append(events, l.event(Quit, w.Text))
		}
	}
	return events
}

// event is an event as of the last look.
func (l *Lock) event(what, owner string) Event {
	s := l.last
	e := Event{
		At: s.Answered, Name: l.Name, What: what, Owner: owner, Lease: -1, Queue: max(len(s.Queue), s.Waiting),
	}
	if count, holds := l.counts[owner]; holds {
		e.Count, e.Lease, e.Mode = string(count), s.TTL, s.Mode
	}
	if len(s.Queue) > 0 {
		e.Next = s.Queue[0].Text
	}
	return e
}
