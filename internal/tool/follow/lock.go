package follow

import (
	"slices"
	"time"
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

// State is a lock as it was at one moment.
type State struct {
	// At is when it was seen.
	At time.Time
	// Owner holds the lock, "" when it is free. Count is how often it has entered.
	Owner, Count string
	// Others are the other holders of a read/write lock, and Mode what it is held for,
	// "read" or "write".
	Others []Holder
	Mode   string
	// Lease is what the lease has left, negative when it has none.
	Lease time.Duration
	// Queue are the waiters of a fair lock, the next one first: all, or the first of them.
	Queue []string
	// Waiting is how many wait, at least those in Queue.
	Waiting int
}

// Holder is one of several holders.
type Holder struct {
	// Owner holds the lock, Count is how often it has entered.
	Owner, Count string
}

// holders are all holders.
func (s *State) holders() []Holder {
	if s.Owner == "" {
		return nil
	}
	return append([]Holder{{s.Owner, s.Count}}, s.Others...)
}

// cut reports whether more wait than are in Queue.
func (s *State) cut() bool { return s.Waiting > len(s.Queue) }

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

	known    bool
	last     State
	counts   map[string]string // of the holders at the last look
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
	case !m.At.After(l.last.At):
		return false
	case m.Owner == "":
		return true
	case m.Owner != l.last.Owner:
		return false
	}
	late := l.due
	l.due = false
	return !late
}

// Unseen reports whether there was a message since the last look.
func (l *Lock) Unseen() bool { return l.received.messages > 0 }

// Look takes a look in, and returns what has happened since the one before.
func (l *Lock) Look(now State) []Event {
	before, heard, first := l.last, l.received, !l.known
	l.last, l.received, l.known = now, received{}, true
	l.counts = countsOf(now.holders())
	changes := changed(&before, &now, &heard, first)
	var events []Event
	for _, c := range changes {
		switch c.what {
		case Held, Taken, Passed:
			l.due = heard.woken != c.owner
		}
		e := l.event(c.what, c.owner)
		if c.what == Passed {
			e.From = before.Owner
		}
		events = append(events, e)
	}
	if !first {
		events = append(events, l.queueEvents(&before, &now, heard.messages > 0)...)
	}
	for i := range events {
		events[i].Messages = heard.messages
	}
	return events
}

// Idle reports whether the lock was free, with an empty queue, when it was last seen.
func (l *Lock) Idle() bool { return l.last.Owner == "" && len(l.last.Queue) == 0 }

// queueEvents returns the events of the queue. An owner that is not queued any more may have got
// the lock and released it again between two looks: Quit is reported only when there was
// neither a message nor a new owner. In a long queue only the first places are seen: an
// owner that comes into sight then has not just been queued.
func (l *Lock) queueEvents(before, now *State, notified bool) (events []Event) {
	for i, owner := range now.Queue {
		if !before.cut() && !slices.Contains(before.Queue, owner) {
			e := l.event(Queued, owner)
			e.Place = i + 1
			events = append(events, e)
		}
	}
	if notified || now.Owner != before.Owner {
		return events
	}
	for _, owner := range before.Queue {
		if !slices.Contains(now.Queue, owner) {
			events = append(events, l.event(Quit, owner))
		}
	}
	return events
}

// event is an event as of the last look.
func (l *Lock) event(what, owner string) Event {
	s := &l.last
	e := Event{
		At: s.At, Name: l.Name, What: what, Owner: owner, Lease: -1, Queue: max(len(s.Queue), s.Waiting),
	}
	if count, holds := l.counts[owner]; holds {
		e.Count, e.Lease, e.Mode = count, s.Lease, s.Mode
	}
	if len(s.Queue) > 0 {
		e.Next = s.Queue[0]
	}
	return e
}
