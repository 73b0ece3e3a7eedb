package localqueue

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
)

const (
	// seenFor is for how long it counts that somebody was seen. Who lets others go first
	// meets them seldom.
	seenFor = 5 * time.Second
	// strangeFor is for how long one of another kind is reckoned with.
	strangeFor = time.Minute
	// countedFor is for how long a count is good.
	countedFor = time.Second
)

// crowd is what a line knows of those who want its lock in other processes. Clients of
// this library free the lock once for a whole burst of turns; others, such as
// Redisson, after each turn, and their turns can only be counted one by one. So it
// matters whether all are of the first kind. That is believed when as many as there are
// listeners were seen with the lock a moment ago, and nobody of the other kind for long.
// It can be wrong for as long: then one of the others gets a turn after each burst.
type crowd struct {
	self    uuid.UUID
	counted time.Time // when it was found out how many there are; zero: that is a guess
	strange time.Time // when one of the other kind was seen last
	seen    []sighting
}

// sighting is a client of this library that held the lock.
type sighting struct {
	client uuid.UUID
	at     time.Time
}

// saw takes in who else held the lock; the zero Owner is one that nobody knows.
func (c *crowd) saw(holder codec.Owner, now time.Time) {
	if !holder.Native() {
		c.strange = now
		return
	}
	c.seen = slices.DeleteFunc(c.seen, func(s sighting) bool {
		return s.client == holder.Client() || now.Sub(s.at) >= seenFor
	})
	c.seen = append(c.seen, sighting{holder.Client(), now})
}

// alike reports whether all others, who are n, are clients of this library.
func (c *crowd) alike(n int, now time.Time) bool {
	if now.Sub(c.counted) >= countedFor || c.strangers(now) {
		return false
	}
	known := 0
	for i := range c.seen {
		if now.Sub(c.seen[i].at) < seenFor {
			known++
		}
	}
	return known >= n
}

// strangers reports whether one of another kind was met not long ago.
func (c *crowd) strangers(now time.Time) bool {
	return now.Sub(c.strange) < strangeFor
}

// forget is for a line that begins anew.
func (c *crowd) forget() {
	c.counted, c.strange, c.seen = time.Time{}, time.Time{}, c.seen[:0]
}
