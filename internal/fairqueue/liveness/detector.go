// Package liveness distinguishes dead waiters from live ones in the queue of a fair lock. It does not do
// I/O, read a clock or start goroutines. A [Detector] receives the queue that a heartbeat read and the
// numbers of listeners on its members' channels:
//
//	heartbeat → Look → count the listeners of Ask → Counted → Evict, Nudge → Next
//
// A waiter, in Go or Java, is subscribed to its own channel from shortly after it was queued until it
// leaves. A dead waiter is disconnected, so its channel loses its subscriber. The reverse is not true: a
// reconnecting waiter is unsubscribed for a while, and Redisson's may be queued for many seconds before
// they subscribe. Therefore a member is dead only after a grace of absence:
//
//	present ──count 0──▶ absent ──grace over, count still 0──▶ dead
//	   ▲                      │
//	   └── any other count, ──┘
//	       queued again, a gap of our own, or counts too far apart
//
// The grace is the configured one for clients of this library, recognized by the version of their UUID,
// and three times that for others.
//
// A count proves nothing if a node cannot be queried, or if the count misses a subscribed waiter of this
// process, as behind a proxy that answers PUBSUB itself. Then no member is evicted.
//
// Only the front of the queue is examined: the first [Front] members that are not already absent.
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
	// Front is how many members at the front are examined, in addition to absent ones.
	Front = 64
	// widest is the maximum window.
	widest = 1024
	// free is the interval of heartbeats while the lock is free.
	free = time.Second
	// again is the least time between two nudges.
	again = 2 * time.Second
	// maxWait is the longest wait of a waiter, in milliseconds.
	maxWait = float64(limits.Max / time.Millisecond)
)

// DefaultGrace is the default grace of clients of this library.
const DefaultGrace = 10 * time.Second

// redissonFactor multiplies the grace for Redisson's waiters. With Redisson's defaults a living waiter may
// be unsubscribed for 25 s: if replies are lost, older releases send the command that queues it four times
// within 17.3 s, and then may take 7.5 s to subscribe. After a lost connection it retries every 10 s.
const redissonFactor = 3

// RedissonGrace returns the grace of Redisson's waiters for a given grace of this library's. A shorter
// grace does not shorten it.
func RedissonGrace(grace time.Duration) time.Duration {
	return redissonFactor * max(grace, DefaultGrace)
}

// Detector observes the queue of one fair lock. It is not safe for concurrent use.
type Detector struct {
	grace   time.Duration
	period  time.Duration
	members map[string]*member
	front   []reply.Place
	ours    func(owner string) bool
	proof   string
	asked   []string
	isFree  bool
	looked  time.Time
	counted time.Time // the look before the last proven count
	known   bool      // the last look was followed by a proven count

	head   string    // the first owner while the lock was free
	since  time.Time // of head
	nudged time.Time
}

type member struct {
	place     int
	wait      int64     // see reply.Other
	heard     bool      // its channel once had a subscriber
	listening bool      // at the last proven count
	absent    time.Time // when it became absent; zero: present or unknown
}

// Death is a dead waiter.
type Death struct {
	reply.Place
	// Absent is how long its channel has had no subscriber.
	Absent     time.Duration
	IsRedlatch bool
	// WasSubscribed is true if it was once subscribed.
	WasSubscribed bool
}

// New returns a detector without members. A waiter of this library is dead when it was absent for grace; with
// a grace of 0, no waiter is ever dead. There is a heartbeat each period.
func New(grace, period time.Duration) *Detector {
	// A very long grace must not overflow into none at all.
	return &Detector{grace: min(grace, math.MaxInt64/redissonFactor), period: period, members: map[string]*member{}}
}

// Window returns how many places of the queue the next look needs. It grows with the absent members.
func (d *Detector) Window() int {
	n := Front
	for _, m := range d.members {
		if !m.absent.IsZero() {
			n += 2
		}
	}
	return min(n, widest)
}

// Others returns the waiters of other processes for the next heartbeat, in the order of the queue.
func (d *Detector) Others() []reply.Other {
	var others []reply.Other
	for _, p := range d.front {
		if m := d.members[p.Owner]; !d.ours(p.Owner) {
			others = append(others, reply.Other{Owner: p.Owner, Wait: m.wait, Living: d.known && m.listening})
		}
	}
	return others
}

// Look processes a heartbeat's reply. ours reports whether an owner is of this process, which is never
// dead, and proof is a waiter of this process that is certainly subscribed, or "".
func (d *Detector) Look(now time.Time, beat reply.Beat, ours func(owner string) bool, proof string) {
	d.looked, d.known = now, false
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
				m.wait = int64(min(wait, maxWait)) // a deadline may be infinite
			}
		case i > m.place:
			m.absent = time.Time{} // further back than before: it was queued again
		}
		m.place = i
		there[p.Owner] = m
	}
	d.members = there
}

// Ask returns the owners whose listeners to count, the proof first, none if that would prove nothing.
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
		return nil // all are ours
	}
	return d.asked
}

// Counted processes the numbers of listeners of the owners that [Detector.Ask] returned last, in that
// order, nil if they could not be counted. It reports whether the counts prove anything.
func (d *Detector) Counted(now time.Time, counts []int64) bool {
	if len(counts) == 0 || len(counts) != len(d.asked) || counts[0] < 1 {
		return false
	}
	if d.looked.Sub(d.counted) > 2*d.period {
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

// Gap resets the absence of all members: our own connections were lost, and theirs may be for the same
// reason.
func (d *Detector) Gap() {
	for _, m := range d.members {
		m.absent, m.listening = time.Time{}, false
	}
}

// Evict returns the dead members at the front of the queue, up to the first that is not.
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

// Nudge returns the first in the queue if it is alive and has left a free lock untouched for so long that
// it cannot know, else "". Waiters of this process are notified directly.
func (d *Detector) Nudge(now time.Time) string {
	if d.head == "" || !d.known || !d.members[d.head].listening || now.Sub(d.since) < free*9/10 || now.Sub(d.nudged) < again {
		return ""
	}
	d.nudged = now
	return d.head
}

// Next returns the time to the next heartbeat: one period, less while the lock is free, or until the grace
// of an absent member at the front is over.
func (d *Detector) Next(now time.Time) time.Duration {
	next := d.period
	if d.isFree && len(d.front) > 0 {
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

// IsRedlatch reports whether an owner is of a client of this library.
func IsRedlatch(owner string) bool {
	o, err := codec.ParseOwner(owner)
	return err == nil && protocol.IsRedlatch(o)
}
