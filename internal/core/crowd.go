package core

import (
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
)

const (
	// seenFor is for how long it counts that somebody was seen.
	seenFor = time.Second
	// seenMost is how many are told apart.
	seenMost = 64
)

// crowd is what a line knows of those who want its lock in other processes. Clients of
// this library free the lock once for a whole burst of turns; others, such as
// Redisson, after each turn, and their turns can only be counted one by one. So it
// matters whether all are of the first kind. That is believed only of those who were
// seen with the lock a moment ago.
type crowd struct {
	self    uuid.UUID
	counted bool      // how many there are is known, not guessed
	strange time.Time // when one of the other kind was seen last
	seen    []sighting
}

// sighting is a client of this library that held the lock.
type sighting struct {
	client uuid.UUID
	at     time.Time
}

// saw takes in who held the lock; the zero Owner is one that nobody knows.
func (c *crowd) saw(holder codec.Owner, now time.Time) {
	client := holder.Client()
	if !holder.Native() {
		c.strange = now
		return
	}
	if client == c.self {
		return
	}
	oldest := 0
	for i := range c.seen {
		if c.seen[i].client == client {
			c.seen[i].at = now
			return
		}
		if c.seen[i].at.Before(c.seen[oldest].at) {
			oldest = i
		}
	}
	if len(c.seen) < seenMost {
		c.seen = append(c.seen, sighting{client, now})
		return
	}
	c.seen[oldest] = sighting{client, now}
}

// alike reports whether all others, who are n, are clients of this library.
func (c *crowd) alike(n int, now time.Time) bool {
	if !c.counted || !c.strange.IsZero() && now.Sub(c.strange) < seenFor {
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

// forget is for a line that begins anew.
func (c *crowd) forget() {
	c.counted, c.strange, c.seen = false, time.Time{}, c.seen[:0]
}
