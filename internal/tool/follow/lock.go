package follow

import (
	"slices"
	"strconv"
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
	// Lease is what the lease has left, negative when it has none.
	Lease time.Duration
	// Queue are the waiters of a fair lock, the next one first: all, or the first of them.
	Queue []string
	// Waiting is how many wait, at least those in Queue.
	Waiting int
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
	// Count is how often the owner has entered, "" when it does not hold the lock.
	Count string
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
	what, owner := change(&before, &now, &heard, first)
	switch what {
	case Held, Taken, Passed:
		l.due = heard.woken != owner
	}
	var events []Event
	if what != "" {
		e := l.event(what, owner)
		if what == Passed {
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

// change returns what has become of the lock, "" when nothing has, and of which owner.
func change(before, now *State, heard *received, first bool) (what, owner string) {
	switch {
	case first && now.Owner != "":
		return Held, now.Owner
	case first && heard.messages > 0:
		return Released, ""
	case first:
		return Free, ""
	case before.Owner == "" && now.Owner == "":
		return "", ""
	case before.Owner == "":
		return Taken, now.Owner
	case now.Owner == "":
		return ending(before, now, heard), before.Owner
	case before.Owner != now.Owner:
		return Passed, now.Owner
	}
	return entering(before, now, heard), now.Owner
}

// slack is how much earlier than expected a lease may be over: the answer with its time to
// live took time to arrive.
const slack = 100 * time.Millisecond

// ending says how a lock became free.
func ending(before, now *State, heard *received) string {
	switch {
	case heard.messages > 0:
		return Released
	case before.Lease >= 0 && !now.At.Add(slack).Before(before.At.Add(before.Lease)):
		return Expired
	}
	return Gone
}

// entering says what a lock's holder has done.
func entering(before, now *State, heard *received) string {
	was, _ := strconv.ParseInt(before.Count, 10, 64) // 0 for what is no number
	is, _ := strconv.ParseInt(now.Count, 10, 64)
	switch {
	case is > was:
		return Entered
	case is < was:
		return Left
	case heard.freed > 0:
		return Passed // the same owner has freed it and taken it again
	}
	return ""
}

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
	if owner != "" && owner == s.Owner {
		e.Count, e.Lease = s.Count, s.Lease
	}
	if len(s.Queue) > 0 {
		e.Next = s.Queue[0]
	}
	return e
}
