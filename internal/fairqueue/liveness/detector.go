// Package liveness detects dead waiters in the queue of a fair lock. It doesn't do I/O, read the clock or start
// goroutines. A waiter that is alive is subscribed to its own channel from shortly after it was queued until it leaves
// the queue. A waiter at the front of the queue is considered dead if its channel has had no subscriber for a grace
// period, which is long enough for a reconnect. A count of subscribers proves nothing if a node cannot be queried, or
// if it misses a waiter in this process that is subscribed. Each heartbeat calls Look, counts the subscribers for the
// owners that Ask returns, and then calls Counted, Evict, Nudge and Next.
//
//	present ──count 0──▶ absent ──grace period over, count still 0──▶ dead
//	   ▲                      │
//	   └── any other count, ──┘
//	       queued again, our connections lost, or counts too far apart
package liveness

import (
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
)

const (
	// Front is the number of waiters that are examined if none of them is absent.
	Front = 64
	// widest is the maximum value of [Detector.Window].
	widest = 1024
	// free is the interval between heartbeats while the lock is free.
	free = time.Second
	// again is the minimum interval between nudges.
	again = 2 * time.Second
	// longQueue is the length from which the time between heartbeats grows with the queue, like their cost, up to
	// slowest periods.
	longQueue = 1000
	slowest   = 6
	// kept is how many heartbeats a place outlasts, so that a process may miss two.
	kept = 3
	// maxWait is the longest wait that is assumed for a waiter, in milliseconds.
	maxWait = float64(limits.Max / time.Millisecond)
)

// DefaultGrace is the default grace period for this library's clients.
const DefaultGrace = 10 * time.Second

// redissonFactor is the factor by which the grace period is extended for Redisson's waiters. By default, such a waiter
// can be alive without a subscription for 25 s, because older releases may send the command that queues it four times
// within 17.3 s and then take 7.5 s to subscribe.
const redissonFactor = 3

// RedissonGrace returns the grace period for Redisson's waiters, given the grace period for this library's waiters.
// The result is never shorter than with the default grace period.
func RedissonGrace(grace time.Duration) time.Duration {
	return redissonFactor * max(grace, DefaultGrace)
}

// Detector observes the queue of one fair lock. It is not safe for concurrent use.
type Detector struct {
	grace   time.Duration
	period  time.Duration // minimum time between heartbeats
	rested  time.Duration // maximum between the last two heartbeats
	next    time.Duration // from the last heartbeat to the next one
	planned time.Duration // from then to the one after it
	members map[string]*member
	front   []reply.Place
	ours    func(owner string) bool
	proof   string
	asked   []string
	isFree  bool
	looked  time.Time
	counted time.Time // the last Look before a count that proved something
	known   bool      // such a count followed the last Look

	head   string    // first owner in the queue of the free lock, or ""
	since  time.Time // when Look first found this head
	nudged time.Time
}

type member struct {
	place     int
	wait      int64     // see reply.Other
	heard     bool      // has had a subscriber
	listening bool      // at the last proven count
	absent    time.Time // since when it has had no subscriber; zero if it has one or that is unknown
}

// Death is a dead waiter.
type Death struct {
	reply.Place
	// Absent is how long it has had no subscriber.
	Absent        time.Duration
	IsRedlatch    bool
	WasSubscribed bool
}

// New returns a Detector that expects a heartbeat every period, or less often if the queue is long. It considers a
// waiter of this library dead once the waiter has been absent for grace. If grace is 0, it doesn't consider any waiter
// dead.
func New(grace, period time.Duration) *Detector {
	// The grace period for Redisson's waiters must not overflow.
	return &Detector{grace: min(grace, math.MaxInt64/redissonFactor), period: period, next: period, planned: period, members: map[string]*member{}}
}

// Window returns the number of places that the next call to Look needs.
func (d *Detector) Window() int {
	n := Front
	for _, m := range d.members {
		if !m.absent.IsZero() {
			n += 2
		}
	}
	return min(n, widest)
}

// Keep returns for how long the next heartbeat and eviction keep places. Other processes may still be sending as
// rarely as after the last heartbeat.
func (d *Detector) Keep() time.Duration { return kept * max(d.next, d.planned) }

// Kept returns for how long the last heartbeat has kept the places, at least.
func (d *Detector) Kept() time.Duration { return kept * d.next }

// Keep returns for how long heartbeats keep places in a queue of the given length.
func Keep(period time.Duration, length int64) time.Duration { return kept * interval(period, length) }

func interval(period time.Duration, length int64) time.Duration {
	return period * time.Duration(min(max(length, longQueue), slowest*longQueue)) / longQueue
}

// Others returns the waiters in other processes for the next heartbeat, in queue order.
func (d *Detector) Others() []reply.Other {
	var others []reply.Other
	for _, p := range d.front {
		if m := d.members[p.Owner]; !d.ours(p.Owner) {
			others = append(others, reply.Other{Owner: p.Owner, Wait: m.wait, Living: d.known && m.listening})
		}
	}
	return others
}

// Look processes a heartbeat's reply. ours reports whether an owner belongs to this process and is thus alive. proof
// is a waiter in this process that is certainly subscribed, or "".
func (d *Detector) Look(now time.Time, beat reply.Beat, ours func(owner string) bool, proof string) {
	d.looked, d.known = now, false
	d.rested, d.next = d.next, d.planned
	d.planned = interval(d.period, beat.Length)
	d.front, d.ours, d.proof = beat.Front, ours, proof
	d.isFree = beat.Free()
	d.meet(beat.Front)
	head := ""
	if d.isFree && len(d.front) > 0 {
		head = d.front[0].Owner
	}
	if head != d.head {
		d.head, d.since = head, now
	}
}

func (d *Detector) meet(front []reply.Place) {
	there := make(map[string]*member, len(front))
	before := math.NaN()
	for i, p := range front {
		deadline, err := strconv.ParseFloat(p.Deadline, 64)
		wait := deadline - before
		if err == nil {
			before = deadline
		}
		if there[p.Owner] != nil {
			continue // the first place counts
		}
		m := d.members[p.Owner]
		switch {
		case m == nil:
			m = &member{}
			if wait > 0 && err == nil {
				m.wait = int64(min(wait, maxWait)) // deadlines may be infinite
			}
		case i > m.place:
			m.absent = time.Time{} // it has moved back, so it was queued again
		}
		m.place = i
		there[p.Owner] = m
	}
	d.members = there
}

// Ask returns the owners whose subscribers are to be counted, with the proof first. It returns nil if a count would be
// useless.
func (d *Detector) Ask() []string {
	d.asked = d.asked[:0]
	if d.proof == "" {
		return nil
	}
	d.asked = append(d.asked, d.proof)
	for owner := range d.members {
		if !d.ours(owner) {
			d.asked = append(d.asked, owner)
		}
	}
	if len(d.asked) == 1 {
		return nil // all waiters are in this process
	}
	return d.asked
}

// Counted processes the counts requested by the last [Detector.Ask], in the same order; counts is nil if counting
// failed. It reports whether they prove anything.
func (d *Detector) Counted(now time.Time, counts []int64) bool {
	if len(counts) == 0 || len(counts) != len(d.asked) || counts[0] < 1 {
		return false
	}
	if d.looked.Sub(d.counted) > 2*d.rested { // the counts are too far apart to prove a lasting absence
		d.Gap()
	}
	d.counted, d.known = d.looked, true
	for i, owner := range d.asked[1:] {
		m := d.members[owner]
		m.listening = counts[i+1] > 0
		switch {
		case m.listening:
			m.heard, m.absent = true, time.Time{}
		case m.absent.IsZero():
			m.absent = now
		}
	}
	return true
}

// Gap resets all absences. It is called when our connections have been lost, because other processes may have lost
// theirs.
func (d *Detector) Gap() {
	for _, m := range d.members {
		m.absent, m.listening = time.Time{}, false
	}
}

// Evict returns the dead waiters at the front of the queue, up to the first one that is alive.
func (d *Detector) Evict() []Death {
	var dead []Death
	for _, p := range d.front {
		m := d.members[p.Owner]
		redlatch := IsRedlatch(p.Owner)
		if !d.known || d.grace <= 0 || d.ours(p.Owner) || m.absent.IsZero() {
			break
		}
		absent := d.looked.Sub(m.absent)
		if absent < d.graceOf(redlatch) {
			break
		}
		dead = append(dead, Death{Place: p, Absent: absent, IsRedlatch: redlatch, WasSubscribed: m.heard})
	}
	return dead
}

func (d *Detector) graceOf(native bool) time.Duration {
	if native {
		return d.grace
	}
	return RedissonGrace(d.grace)
}

// Nudge returns the first owner in the queue if it is alive but has ignored a free lock for too long, otherwise "".
// Waiters in this process are notified directly.
func (d *Detector) Nudge(now time.Time) string {
	if d.head == "" || !d.known || !d.members[d.head].listening || now.Sub(d.since) < free*9/10 || now.Sub(d.nudged) < again {
		return ""
	}
	d.nudged = now
	return d.head
}

// Next returns the time until the next heartbeat, which is shorter if the lock is free and the queue is not long, or if
// a grace period is about to end.
func (d *Detector) Next(now time.Time) time.Duration {
	next := d.next
	if d.isFree && len(d.front) > 0 && next == d.period {
		next = free
	}
	for _, p := range d.front {
		m := d.members[p.Owner]
		if m.absent.IsZero() || d.grace <= 0 {
			break
		}
		if due := m.absent.Add(d.graceOf(IsRedlatch(p.Owner))).Sub(now); due > 0 {
			next = min(next, due)
		}
	}
	return max(next, free/10)
}

// IsRedlatch reports whether an owner was created by this library.
func IsRedlatch(owner string) bool {
	o, err := codec.ParseOwner(owner)
	return err == nil && protocol.IsRedlatch(o)
}
