package localqueue

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
)

const (
	// seenFor is for how long it counts that a client was seen. A process that yields
	// meets the others seldom.
	seenFor = 5 * time.Second
	// foreignFor is for how long a client of another kind is expected to come again.
	foreignFor = time.Minute
	// countedFor is for how long a count is good.
	countedFor = time.Second
)

// contenders is what a queue knows of the processes that want its lock besides this one.
// Clients of this library free the lock once for a whole burst of turns; others, such as
// Redisson, after each turn, and their turns can only be counted one by one. So it matters
// whether all are of the first kind. That is believed when as many as there are listeners
// were seen with the lock within seenFor, and none of another kind within foreignFor. It
// can be wrong for as long: then one of the others gets a turn after each burst.
type contenders struct {
	self      uuid.UUID
	counted   time.Time // when they were counted; zero: their number is a guess
	foreignAt time.Time // when one of another kind was seen last
	seen      []contender
}

// contender is a client of this library that held the lock.
type contender struct {
	client uuid.UUID
	at     time.Time
}

// met records another holder of the lock; the zero Owner is an unknown one.
func (c *contenders) met(holder codec.Owner, now time.Time) {
	if !holder.IsRedlatch() {
		c.foreignAt = now
		return
	}
	c.seen = slices.DeleteFunc(c.seen, func(s contender) bool {
		return s.client == holder.Client() || now.Sub(s.at) >= seenFor
	})
	c.seen = append(c.seen, contender{holder.Client(), now})
}

// allRedlatch reports whether all other processes, n in number, are clients of this library.
func (c *contenders) allRedlatch(n int, now time.Time) bool {
	if now.Sub(c.counted) >= countedFor || c.foreign(now) {
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

// foreign reports whether a client of another kind was met within foreignFor.
func (c *contenders) foreign(now time.Time) bool {
	return now.Sub(c.foreignAt) < foreignFor
}

// forget is for a queue that begins anew.
func (c *contenders) forget() {
	c.counted, c.foreignAt, c.seen = time.Time{}, time.Time{}, c.seen[:0]
}
