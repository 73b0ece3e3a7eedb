// Package follow reports changes to locks. It inspects locks repeatedly and listens on their
// channels. A message means that a lock was released. No message is sent when a lock is acquired,
// when a lease ends, or when a fair lock with an empty queue is released. Therefore, an event is a
// difference between two inspections, called looks, and a lock that changes faster than it is read
// produces fewer events than changes.
package follow

import (
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Kinds of events.
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

// Event is a change to a lock.
type Event struct {
	At   time.Time
	Name string
	What string
	// Owner is "" if unknown. From is the previous holder of a Passed lock.
	Owner, From string
	// Count is the owner's hold count, or "" if it does not hold the lock.
	Count, Mode string
	// Lease is the remaining lease. Negative means no lease.
	Lease time.Duration
	// Place is the owner's place in the queue, or 0 if it is not queued.
	Place int
	Queue int
	Next  string
	// Messages counts messages since the last look.
	Messages int
}

// Lock is a followed lock. It is not safe for concurrent use.
type Lock struct {
	Name string

	last     *inspect.Snapshot        // nil before the first look
	counts   map[string]inspect.Count // of the holders at the last look
	received received
	// due is set if the owner was first seen before a message had woken it, so that message may
	// still arrive.
	due bool
}

type received struct {
	messages int
	freed    int    // messages that prove that the lock was free
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

// frees reports whether a message proves that the lock has been free since the last look. A message
// to all waiters does. A message to the holder also does, because the holder must have released the
// lock and queued again, unless the message is late and belongs to the hold that was already seen.
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

// Unseen reports whether a message has arrived since the last look.
func (l *Lock) Unseen() bool { return l.received.messages > 0 }

// Look records a look and returns the events since the last one.
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

func firstOwner(s *inspect.Snapshot) string {
	if !s.Held() {
		return ""
	}
	return s.Holders[0].Owner
}

// Idle reports whether the lock was last seen free and without waiters.
func (l *Lock) Idle() bool { return l.last == nil || !l.last.Held() && len(l.last.Queue) == 0 }

// queueEvents reports that an owner quit only if there was neither a message nor a new holder. If
// the last look did not show the whole queue, it does not report new waiters, which may only have
// moved forward.
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

type change struct{ what, owner string }

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

// shared compares the holders of a lock that was held at both looks. If none of the previous
// holders remains, the lock has passed to the first new holder.
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
		return []change{{Passed, has[0].Owner}} // the same owner released the lock and acquired it again
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

func counted(h inspect.Holder, count inspect.Count) []change {
	was, _ := strconv.ParseInt(string(h.Count), 10, 64)
	is, _ := strconv.ParseInt(string(count), 10, 64)
	switch {
	case is > was:
		return []change{{Entered, h.Owner}}
	case is < was:
		return []change{{Left, h.Owner}}
	}
	return nil
}

// slack is how much earlier a lease may end than expected, because the reply with the TTL took
// time.
const slack = 100 * time.Millisecond

func ending(before, now *inspect.Snapshot, heard *received) string {
	switch {
	case heard.messages > 0:
		return Released
	case before.TTL >= 0 && !now.Answered.Add(slack).Before(before.Answered.Add(before.TTL)):
		return Expired
	}
	return Gone
}
