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

// Sight is a lock as it was at one moment.
type Sight struct {
	// At is when it was seen.
	At time.Time
	// Owner holds the lock, "" when it is free. Count is how often it has entered.
	Owner, Count string
	// Lease is what the lease has left, negative when it has none.
	Lease time.Duration
	// Queue is who waits for a fair lock, the next one first: all, or the first of them.
	Queue []string
	// Waiting is how many wait, at least those in Queue.
	Waiting int
}

// cut reports whether more wait than are in Queue.
func (s *Sight) cut() bool { return s.Waiting > len(s.Queue) }

// Event is something that happened to a lock.
type Event struct {
	// At is when it was seen, Name the lock's.
	At   time.Time
	Name string
	// What is one of the constants.
	What string
	// Owner is whom it happened to: who has or had the lock, or waits for it; "" when
	// that is not known. From is who had it before, for Passed.
	Owner, From string
	// Count is how often the owner has entered, "" when it does not hold the lock.
	Count string
	// Lease is what the lease has left, negative when there is none.
	Lease time.Duration
	// Place is the owner's in the queue, 0 when it has none.
	Place int
	// Queue is how many wait in the queue, Next who is the first of them.
	Queue int
	Next  string
	// Messages is how many messages there were since the last look.
	Messages int
}

// Lock is a lock that is followed. It is for one goroutine.
type Lock struct {
	// Name is the lock's name.
	Name string

	known bool
	last  Sight
	heard news
	// due is true when the owner was new at a look before which no message had called
	// it: if there is one, it may still be on its way.
	due bool
}

// news is what was heard since the last look.
type news struct {
	messages int
	freed    int    // messages that say that the lock was free
	called   string // who was called last
}

// Hear takes a message in.
func (l *Lock) Hear(m *Message) {
	l.heard.messages++
	if m.Owner != "" {
		l.heard.called = m.Owner
	}
	if l.frees(m) {
		l.heard.freed++
	}
}

// frees reports whether a message says that the lock was free since the last look. One
// to all who wait does. One that calls a single waiter does when that one had the lock
// then: it gave it up, queued anew, and was called. Another that is called may not come,
// and the lock stay where it is. What was heard before the last look had its answer is
// no news, nor is what has called the owner that was found there.
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

// Unseen reports whether anything was heard since the last look.
func (l *Lock) Unseen() bool { return l.heard.messages > 0 }

// Look takes a look in, and returns what has happened since the one before.
func (l *Lock) Look(now Sight) []Event {
	before, heard, first := l.last, l.heard, !l.known
	l.last, l.heard, l.known = now, news{}, true
	what, owner := change(&before, &now, &heard, first)
	switch what {
	case Held, Taken, Passed:
		l.due = heard.called != owner
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
		events = append(events, l.queue(&before, &now, heard.messages > 0)...)
	}
	for i := range events {
		events[i].Messages = heard.messages
	}
	return events
}

// Idle reports whether the lock was free, and nobody queued, when it was last seen.
func (l *Lock) Idle() bool { return l.last.Owner == "" && len(l.last.Queue) == 0 }

// change says what has become of the lock, "" when nothing has, and to whom.
func change(before, now *Sight, heard *news, first bool) (what, owner string) {
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

// slack is how much earlier than told a lease may be over: the answer that told of it
// was on its way.
const slack = 100 * time.Millisecond

// ending says how a lock became free.
func ending(before, now *Sight, heard *news) string {
	switch {
	case heard.messages > 0:
		return Released
	case before.Lease >= 0 && !now.At.Add(slack).Before(before.At.Add(before.Lease)):
		return Expired
	}
	return Gone
}

// entering says what a lock's holder has done.
func entering(before, now *Sight, heard *news) string {
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

// queue tells of the queue. Whoever is not queued any more may have got the lock and
// given it up again between two looks: that it has quit is told only when nobody has.
// Behind the first of a long queue, others wait that are not seen: who comes into sight
// then has not just come.
func (l *Lock) queue(before, now *Sight, told bool) (events []Event) {
	for i, owner := range now.Queue {
		if !before.cut() && !slices.Contains(before.Queue, owner) {
			e := l.event(Queued, owner)
			e.Place = i + 1
			events = append(events, e)
		}
	}
	if told || now.Owner != before.Owner {
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
