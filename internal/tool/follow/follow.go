// Package follow finds out what happens to locks from looks at them and from the messages
// on their channels.
//
// A message means that something has happened: that a lock became free, and in a fair lock
// which waiter is next. It does not name the owner that freed it, and nothing is published
// when a lock is taken, when its lease runs out, or when a fair lock with an empty queue is
// released. So a lock is looked at after each message and now and then, and what happened
// is what changed between two looks:
//
//	before   now    event
//	–        A      held, at the first look
//	–        free   free, likewise
//	free     A      taken
//	A        B      passed; also from A to A, when a message shows that it was free
//	A        free   released, when a message was seen
//	                expired, when its lease was over
//	                gone otherwise: deleted, or a fair lock with an empty queue
//	A        A      entered, left: its count went up or down
//	A, B     A, C   B left, C entered: a read/write lock with several holders
//	queue           queued, quit: an owner is queued, or is no more and has not got
//	                the lock
//
// and woken, for a message that wakes one waiter of a fair lock. That waiter may not come:
// the lock has passed when another owner is seen with it. That a lock which A had and has
// was free in between is shown by a message to all waiters, and by one that wakes A; not by
// one that wakes another owner, nor by one about an event that the last look has already
// seen.
//
// A lock that changes owners more often than it is looked at has fewer events than changes;
// the messages since the last look are counted. An owner that writes and reads holds a
// read/write lock twice, as a writer and as a reader. Of a long queue the first places are seen:
// arrivals behind them are no events.
//
// [Lock] decides and does no I/O. [PatternSubscriber] receives the messages of one
// server, [ChannelSubscriber] those of a cluster, where no pattern covers them.
package follow

import (
	"slices"
	"strconv"
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

// change is what an owner has done with a lock, or what has become of its hold.
type change struct{ what, owner string }

// changed returns what happened to the holders between two looks.
func changed(before, now *inspect.Snapshot, heard *received, first bool) []change {
	had, has := before.Holders, now.Holders
	switch {
	case first && len(has) > 0:
		return each(Held, has)
	case first && heard.messages > 0:
		return []change{{what: Released}}
	case first:
		return []change{{what: Free}}
	case len(had) == 0 && len(has) == 0:
		return nil
	case len(had) == 0:
		return append(each(Taken, has[:1]), each(Entered, has[1:])...)
	case len(has) == 0:
		return each(ending(before, now, heard), had)
	}
	return shared(had, has, heard)
}

func each(what string, holders []inspect.Holder) (all []change) {
	for _, h := range holders {
		all = append(all, change{what, h.Owner})
	}
	return all
}

// shared returns what holders of a lock have done that was held at both looks. Where none
// stayed it has passed to the first of the new ones. A holder of a read/write lock that came
// beside others entered it, and one that went left it.
func shared(had, has []inspect.Holder, heard *received) (all []change) {
	stayed, counts, before := 0, countsOf(has), countsOf(had)
	for _, h := range had {
		if count, still := counts[h.Owner]; !still {
			all = append(all, change{Left, h.Owner})
		} else {
			stayed++
			all = append(all, counted(h, count)...)
		}
	}
	for _, h := range has {
		if _, is := before[h.Owner]; !is {
			all = append(all, change{Entered, h.Owner})
		}
	}
	switch {
	case stayed == 0:
		return append([]change{{Passed, has[0].Owner}}, each(Entered, has[1:])...)
	case len(all) == 0 && len(has) == 1 && heard.freed > 0:
		return []change{{Passed, has[0].Owner}} // the same owner has freed it and taken it again
	}
	return all
}

func countsOf(holders []inspect.Holder) map[string]inspect.Count {
	counts := make(map[string]inspect.Count, len(holders))
	for _, h := range holders {
		counts[h.Owner] = h.Count
	}
	return counts
}

// counted says what a holder has done that has another count now.
func counted(h inspect.Holder, count inspect.Count) []change {
	was, _ := strconv.ParseInt(string(h.Count), 10, 64) // 0 for what is no number
	is, _ := strconv.ParseInt(string(count), 10, 64)
	switch {
	case is > was:
		return []change{{Entered, h.Owner}}
	case is < was:
		return []change{{Left, h.Owner}}
	}
	return nil
}

// slack is how much earlier than expected a lease may be over: the answer with its time to
// live took time to arrive.
const slack = 100 * time.Millisecond

// ending says how a lock became free.
func ending(before, now *inspect.Snapshot, heard *received) string {
	switch {
	case heard.messages > 0:
		return Released
	case before.TTL >= 0 && !now.Answered.Add(slack).Before(before.Answered.Add(before.TTL)):
		return Expired
	}
	return Gone
}
