package board

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// settles is how long the first scan for viewers may take, for a second one to be made before they
// see it: which waiters are dead, and which circles stay, is known from two.
const settles = 2 * time.Second

// memory is what scans leave for the next, also for some minutes after the last viewer.
type memory struct {
	seen *seen
	// turn says which waiters are counted next.
	turn int
	// circles are those of the last scan, by their keys, and untaken the first waiters for locks
	// that were free then.
	circles map[string]bool
	untaken map[string]string
}

// seen is what scans and looks at one lock have seen, for each other.
type seen struct {
	ages     ages
	presence presence
}

// scanAgain is the feed of all locks, or of all numbers.
func (b *Board) scanAgain(ctx context.Context, numbers bool, m *memory, last *Locks, publish func(*Locks) bool) {
	if last == nil {
		*m, last = memory{seen: m.seen}, &Locks{}
	}
	for first := true; ; first = false {
		began := time.Now()
		last = b.scanOnce(ctx, numbers, m, last)
		if first && last.pending && time.Since(began) < settles {
			if inspect.Pause(ctx, max(absentFor, time.Since(began))) != nil { // once: viewers wait
				return
			}
			began = time.Now()
			last = b.scanOnce(ctx, numbers, m, last)
		}
		took := time.Since(began)
		pause := max(b.every, pauseAfter(took, last.Err))
		last.expect(pause, took)
		if !publish(last) || inspect.Pause(ctx, pause) != nil {
			return
		}
	}
}

// pauseAfter returns the pause after a look that took so long. One that failed has mostly waited, and
// what is old should be seen anew soon.
func pauseAfter(took time.Duration, err error) time.Duration {
	if pause := listing.PauseFactor * took; err == nil || pause < lookEvery {
		return pause
	}
	return lookEvery
}

// scanOnce scans all locks, or all numbers.
func (b *Board) scanOnce(ctx context.Context, numbers bool, m *memory, last *Locks) *Locks {
	began := time.Now()
	found := &Locks{}
	unread, err := b.source.scan(ctx, listing.Request{
		Pattern: b.pattern, Permits: true, Numbers: numbers, Places: placesOfQueue, Waiting: true, Found: found.add,
	})
	if err != nil {
		failed := *last
		failed.Err, failed.pending = b.source.problem(err), false
		return &failed
	}
	if unread.Uncounted != nil {
		found.Uncounted = inspect.NotCounted(unread.Uncounted)
		for i := range found.Entries {
			found.Entries[i].Uncounted = found.Entries[i].Queue == 0
		}
	}
	if !numbers {
		found.date(m)
		m.seen.ages.ended(began, found.Total == len(found.Entries))
	}
	found.passing(m)
	found.sort()
	found.findDead(m, b.source.fronts(), b.counter(ctx))
	found.findCircles(m, b.counter(ctx))
	found.Entries = found.Entries[:min(len(found.Entries), kept)]
	found.Clients = clientsOf(found.Entries, found.Circles, m.isDead)
	m.seen.presence.forget(began.Add(-remembers))
	found.At, found.Took, found.Unread = time.Now(), time.Since(began), unread
	return found
}

// date notes since when the holders have the locks.
func (l *Locks) date(m *memory) {
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Number != nil {
			continue
		}
		e.Ages = m.seen.ages.sees(e.Name, &look{
			at: e.At, holders: e.Holders, more: e.More, shared: e.Kind == listing.ReadWrite, ttl: e.TTL, token: e.Token,
		})
		e.Age = oldest(e.Ages)
	}
}

// passing leaves out that a lock is free with a queue when the last scan has not found it so, with
// the same waiter in front: it may be on its way to that one.
func (l *Locks) passing(m *memory) {
	before := m.untaken
	m.untaken = map[string]string{}
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Trouble != Untaken {
			continue
		}
		if m.untaken[e.Name] = e.Next; before[e.Name] != e.Next {
			e.Trouble, l.pending = "", true
		}
	}
}

// oldest returns the age of the hold that is known to last for longest.
func oldest(all []Age) (first Age) {
	for _, a := range all {
		if first.Since.IsZero() || a.Since.Before(first.Since) {
			first = a
		}
	}
	return first
}
