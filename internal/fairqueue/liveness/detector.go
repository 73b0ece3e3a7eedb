// Package liveness tells dead waiters from live ones in the queue of a fair lock.
//
// It decides and does nothing else: no I/O, no clock, no goroutine. A [Detector] is
// given what a heartbeat found in the queue and how many listen to its members'
// channels. It says which of them are dead beyond doubt and may be evicted, whether
// the first must get the message that the lock is free once more, which members are alive
// and so keep their places, and when to look again:
//
//	heartbeat → Look → count the listeners of Ask → Counted → Evict, Nudge → Next
//
// A waiter of a fair lock, in Go or Java, listens to a channel of its own from
// shortly after it was queued until it leaves. A dead one has no connection, so its
// channel has no subscriber. The reverse does not hold: one that reconnects has none for a
// while, and one of Redisson's may be queued for many seconds before it listens. Therefore
// each member has a clock of absence:
//
//	present ──count 0──▶ absent since then ──grace over, count 0 still──▶ dead
//	   ▲                      │
//	   └── any other count, ──┘
//	       queued anew, a gap of our own, or counts too far apart
//
// The grace is the configured one for clients of this library, which are recognized by the
// version of their UUID, and three times that for others. Whether one has been heard before
// makes no difference: a waiter of this process may be too new to have heard it.
//
// A count proves nothing when it cannot be done on all nodes, or when it misses a
// waiter of this process that is known to listen, as behind a proxy that answers by
// itself. Then no member counts as present or absent, and none is evicted.
//
// Only the front of the queue is looked at, where the dead are in the way: the
// first [Front] that are not absent already.
package liveness

import (
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
)

const (
	// Front is how many members in front of a queue are looked at, besides those
	// that are absent already.
	Front = 64
	// widest bounds what is looked at in all.
	widest = 1024
	// free is the time between two looks at a queue whose lock is free.
	free = time.Second
	// again is the least time between two nudges.
	again = 2 * time.Second
	// maxWait is the longest wait that a waiter can have, in milliseconds.
	maxWait = float64(limits.Max / time.Millisecond)
)

// DefaultGrace is the grace of clients of this library unless another one is set.
const DefaultGrace = 10 * time.Second

// redissonFactor is by how much the grace of Redisson's waiters is longer. A living one may
// have no subscription for 25 s with the defaults of Redisson: where replies are lost, its
// older releases send the command that queues it four times within 17.3 s, and then it may
// take 7.5 s to subscribe. One that has lost its connections tries again every 10 s.
const redissonFactor = 3

// RedissonGrace returns the grace of Redisson's waiters where grace is that of this
// library's: what a living one needs does not get less with it.
func RedissonGrace(grace time.Duration) time.Duration {
	return redissonFactor * max(grace, DefaultGrace)
}

// Config is what a [Detector] goes by.
type Config struct {
	// Grace is how long a waiter of this library must have been absent before it
	// counts as dead. 0: no waiter ever does.
	Grace time.Duration
	// Period is the time between two heartbeats.
	Period time.Duration
}

// Detector keeps the queue of one fair lock for one process. It is not safe for
// concurrent use.
type Detector struct {
	cfg     Config
	members map[string]*member
	front   []reply.Place
	ours    func(owner string) bool
	proof   string
	asked   []string
	isFree  bool
	looked  time.Time // the last look
	counted time.Time // the look before the last count that proves something; zero: none
	known   bool      // the last look was followed by such a count

	head   string    // the first owner while the lock was free
	since  time.Time // when that was seen first
	nudged time.Time
}

// member is what is known of one that is queued.
type member struct {
	place     int
	wait      int64     // see reply.Other
	heard     bool      // its channel has had a subscriber once
	listening bool      // at the last count that proves something
	absent    time.Time // since when it has had none; zero: it is present, or not known
}

// Death is a waiter that is dead.
type Death struct {
	reply.Place
	// Absent is for how long its channel has had no subscriber.
	Absent time.Duration
	// IsRedlatch is true for a client of this library.
	IsRedlatch bool
	// WasSubscribed is true when it had been subscribed before.
	WasSubscribed bool
}

// New returns a detector that knows nothing yet.
func New(cfg Config) *Detector {
	// A very long grace must not overflow into none at all.
	cfg.Grace = min(cfg.Grace, math.MaxInt64/redissonFactor)
	return &Detector{cfg: cfg, members: map[string]*member{}}
}

// Window returns how many members in front of the queue a look needs. It grows fast
// where many are absent.
func (d *Detector) Window() int {
	n := Front
	for _, m := range d.members {
		if !m.absent.IsZero() {
			n += 2
		}
	}
	return min(n, widest)
}

// Others returns what the next heartbeat is to know of the waiters of others, in the
// order of the queue.
func (d *Detector) Others() []reply.Other {
	var others []reply.Other
	for _, p := range d.front {
		if m := d.members[p.Owner]; !d.ours(p.Owner) {
			others = append(others, reply.Other{Owner: p.Owner, Wait: m.wait, Living: d.known && m.listening})
		}
	}
	return others
}

// headListens reports whether the first in the queue is subscribed, as far as that
// is known.
func (d *Detector) headListens() bool {
	return d.known && len(d.front) > 0 && d.members[d.front[0].Owner].listening
}

// Look takes a heartbeat's answer in. Ours tells the process's own waiters, which
// are never called dead, and proof is one of them that is listening for certain, or
// "" when there is none.
func (d *Detector) Look(now time.Time, beat reply.Beat, ours func(owner string) bool, proof string) {
	d.looked, d.known = now, false
	d.front, d.ours, d.proof = beat.Front, ours, proof
	d.isFree = beat.Free()
	d.meet(beat.Front)
	d.watchHead(now)
}

// meet matches the known members with those in the queue.
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
			continue // twice in the queue: the first place counts
		}
		m := d.members[p.Owner]
		switch {
		case m == nil:
			m = &member{}
			if wait > 0 && err == nil {
				m.wait = int64(min(wait, maxWait)) // a deadline may be infinite
			}
		case i > m.place:
			m.absent = time.Time{} // further back than before: it was queued anew
		}
		m.place = i
		there[p.Owner] = m
	}
	d.members = there
}

// watchHead takes the time for which one and the same has been the first while the
// lock was free.
func (d *Detector) watchHead(now time.Time) {
	head := ""
	if d.isFree && len(d.front) > 0 {
		head = d.front[0].Owner
	}
	if head != d.head {
		d.head, d.since = head, now
	}
}

// Ask returns the owners whose channels to count the subscribers of, none when
// that would prove nothing.
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
		return nil // all that are there are ours
	}
	return d.asked
}

// Counted takes in how many listen to the channels of those that [Detector.Ask]
// returned last, in that order; nil when it could not be found out. It reports
// whether the counts prove anything.
func (d *Detector) Counted(now time.Time, counts []int64) bool {
	if len(counts) == 0 || len(counts) != len(d.asked) || counts[0] < 1 {
		return false
	}
	if d.looked.Sub(d.counted) > 2*d.cfg.Period {
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

// Gap forgets which members are absent: connections were lost, so that the
// absence of others may have the same cause.
func (d *Detector) Gap() {
	for _, m := range d.members {
		m.absent, m.listening = time.Time{}, false
	}
}

// Evict returns those that are dead, from the first in the queue to the last that
// has no live member before it.
func (d *Detector) Evict() []Death {
	var dead []Death
	for _, p := range d.front {
		m := d.members[p.Owner]
		redlatch := IsRedlatch(p.Owner)
		if !d.known || d.cfg.Grace <= 0 || d.ours(p.Owner) || m.absent.IsZero() {
			break
		}
		absent := d.looked.Sub(m.absent)
		if absent < d.grace(redlatch) {
			break
		}
		dead = append(dead, Death{Place: p, Absent: absent, IsRedlatch: redlatch, WasSubscribed: m.heard})
	}
	return dead
}

func (d *Detector) grace(native bool) time.Duration {
	if native {
		return d.cfg.Grace
	}
	return RedissonGrace(d.cfg.Grace)
}

// Nudge returns the first in the queue when it is there, and has let a free lock
// lie for so long that it cannot know; else "". It is one of another process: those
// of this one are notified directly.
func (d *Detector) Nudge(now time.Time) string {
	if d.head == "" || !d.headListens() || now.Sub(d.since) < free*9/10 || now.Sub(d.nudged) < again {
		return ""
	}
	d.nudged = now
	return d.head
}

// Next returns how long to wait before the next heartbeat: one period, less while
// the lock is free, or when a member at the front will then have been absent for
// long enough.
func (d *Detector) Next(now time.Time) time.Duration {
	next := d.cfg.Period
	if d.isFree && len(d.front) > 0 {
		next = free
	}
	for _, p := range d.front {
		m := d.members[p.Owner]
		if m.absent.IsZero() || d.cfg.Grace <= 0 {
			break
		}
		if due := m.absent.Add(d.grace(IsRedlatch(p.Owner))).Sub(now); due > 0 {
			next = min(next, due)
		}
	}
	return max(next, free/10)
}

// IsRedlatch reports whether an owner is one of a client of this library.
func IsRedlatch(owner string) bool {
	o, err := codec.ParseOwner(owner)
	return err == nil && o.IsRedlatch()
}
