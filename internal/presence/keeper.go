package presence

import (
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/codec"
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
	// heardFactor and newFactor are by how much the grace of those that are not of
	// this library is longer: once heard, they may take long to reconnect; when new,
	// they are queued long before they listen.
	heardFactor = 3
	newFactor   = 6
	// maxWait is the longest wait that a waiter can have, in milliseconds.
	maxWait = float64(codec.MaxLease / time.Millisecond)
)

// Config is what a [Keeper] goes by.
type Config struct {
	// Grace is how long a waiter of this library must have been absent before it
	// counts as dead. 0: nobody ever does.
	Grace time.Duration
	// Period is the time between two heartbeats.
	Period time.Duration
}

// Keeper keeps the queue of one fair lock for one process. It is not safe for
// concurrent use.
type Keeper struct {
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

	head   string    // who was the first while the lock was free
	since  time.Time // when that was seen first
	nudged time.Time
}

// member is what is known of one that is queued.
type member struct {
	place     int
	wait      int64     // see reply.Other
	heard     bool      // somebody has listened to its channel once
	listening bool      // at the last count that proves something
	absent    time.Time // since when nobody has; zero: it is present, or not known
}

// Death is a waiter that is dead.
type Death struct {
	reply.Place
	// Absent is for how long nobody has listened to its channel.
	Absent time.Duration
	// Native is true for a client of this library.
	Native bool
	// Heard is true when somebody had listened before.
	Heard bool
}

// New returns a keeper that knows nothing yet.
func New(cfg Config) *Keeper {
	// A grace that nobody sees the end of must not overflow into none at all.
	cfg.Grace = min(cfg.Grace, math.MaxInt64/newFactor)
	return &Keeper{cfg: cfg, members: map[string]*member{}}
}

// Window returns how many members in front of the queue a look needs. It grows fast
// where many are absent.
func (k *Keeper) Window() int {
	n := Front
	for _, m := range k.members {
		if !m.absent.IsZero() {
			n += 2
		}
	}
	return min(n, widest)
}

// Others returns what the next heartbeat is to know of the waiters of others, in the
// order of the queue.
func (k *Keeper) Others() []reply.Other {
	var others []reply.Other
	for _, p := range k.front {
		if m := k.members[p.Owner]; !k.ours(p.Owner) {
			others = append(others, reply.Other{Owner: p.Owner, Wait: m.wait, Living: k.known && m.listening})
		}
	}
	return others
}

// headListens reports whether somebody listens for the first in the queue, as far as
// that is known.
func (k *Keeper) headListens() bool {
	return k.known && len(k.front) > 0 && k.members[k.front[0].Owner].listening
}

// Look takes a heartbeat's answer in. Ours tells the process's own waiters, which
// are never called dead, and proof is one of them that is listening for certain, or
// "" when there is none.
func (k *Keeper) Look(now time.Time, beat reply.Beat, ours func(owner string) bool, proof string) {
	k.looked, k.known = now, false
	k.front, k.ours, k.proof = beat.Front, ours, proof
	k.isFree = beat.Free()
	k.meet(beat.Front)
	k.watchHead(now)
}

// meet matches what is known with who is there.
func (k *Keeper) meet(front []reply.Place) {
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
		m := k.members[p.Owner]
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
	k.members = there
}

// watchHead takes the time for which one and the same has been the first while the
// lock was free.
func (k *Keeper) watchHead(now time.Time) {
	head := ""
	if k.isFree && len(k.front) > 0 {
		head = k.front[0].Owner
	}
	if head != k.head {
		k.head, k.since = head, now
	}
}

// Ask returns whose channels to count the listeners of, nobody when that would
// prove nothing.
func (k *Keeper) Ask() []string {
	k.asked = k.asked[:0]
	if k.proof == "" {
		return nil
	}
	k.asked = append(k.asked, k.proof)
	for owner := range k.members {
		if !k.ours(owner) {
			k.asked = append(k.asked, owner)
		}
	}
	if len(k.asked) == 1 {
		return nil // all that are there are ours
	}
	return k.asked
}

// Counted takes in how many listen to the channels of those that [Keeper.Ask]
// returned last, in that order; nil when it could not be found out. It reports
// whether the counts prove anything.
func (k *Keeper) Counted(now time.Time, counts []int64) bool {
	if len(counts) == 0 || len(counts) != len(k.asked) || counts[0] < 1 {
		return false
	}
	if k.looked.Sub(k.counted) > 2*k.cfg.Period {
		k.Gap()
	}
	k.counted, k.known = k.looked, true
	for i, owner := range k.asked[1:] {
		m := k.members[owner]
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

// Gap forgets who is absent: connections were lost, so that the silence of others
// may have the same cause.
func (k *Keeper) Gap() {
	for _, m := range k.members {
		m.absent, m.listening = time.Time{}, false
	}
}

// Evict returns those that are dead, from the first in the queue to the last that
// has nobody alive before it.
func (k *Keeper) Evict() []Death {
	var dead []Death
	for _, p := range k.front {
		m := k.members[p.Owner]
		native := Native(p.Owner)
		if !k.known || k.cfg.Grace <= 0 || k.ours(p.Owner) || m.absent.IsZero() {
			break
		}
		absent := k.looked.Sub(m.absent)
		if absent < k.grace(native, m.heard) {
			break
		}
		dead = append(dead, Death{Place: p, Absent: absent, Native: native, Heard: m.heard})
	}
	return dead
}

func (k *Keeper) grace(native, heard bool) time.Duration {
	switch {
	case native:
		return k.cfg.Grace
	case heard:
		return heardFactor * k.cfg.Grace
	}
	return newFactor * k.cfg.Grace
}

// Nudge returns the first in the queue when it is there, and has let a free lock
// lie for so long that it cannot know; else "". It is one of another process: those
// of this one are told directly.
func (k *Keeper) Nudge(now time.Time) string {
	if k.head == "" || !k.headListens() || now.Sub(k.since) < free*9/10 || now.Sub(k.nudged) < again {
		return ""
	}
	k.nudged = now
	return k.head
}

// Next returns how long to wait before the next heartbeat: one period, less while
// the lock is free, or when somebody in the way will then have been absent for long
// enough.
func (k *Keeper) Next(now time.Time) time.Duration {
	next := k.cfg.Period
	if k.isFree && len(k.front) > 0 {
		next = free
	}
	for _, p := range k.front {
		m := k.members[p.Owner]
		if m.absent.IsZero() || k.cfg.Grace <= 0 {
			break
		}
		if due := m.absent.Add(k.grace(Native(p.Owner), m.heard)).Sub(now); due > 0 {
			next = min(next, due)
		}
	}
	return max(next, free/10)
}

// Native reports whether an owner is one of a client of this library.
func Native(owner string) bool {
	o, err := codec.ParseOwner(owner)
	return err == nil && o.Native()
}
