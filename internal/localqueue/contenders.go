package localqueue

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
)

const (
	// seenFor is how long a client counts after it was seen. A yielding process sees others rarely.
	seenFor = 5 * time.Second
	// foreignFor is how long another kind of client is expected to return.
	foreignFor = time.Minute
	// countedFor is how long a count is valid.
	countedFor = time.Second
)

// contenders records the other processes that want the lock. Redlatch clients release it once per burst
// of turns; others, such as Redisson, after each turn. All count as Redlatch clients if as many Redlatch
// clients as there are subscribers held the lock within seenFor, and no other client within foreignFor.
// If that is wrong, another client gets only one turn per burst for a while.
type contenders struct {
	self      uuid.UUID
	counted   time.Time // zero: their number is a guess
	foreignAt time.Time // when another kind was last seen
	seen      []contender
}

type contender struct {
	client uuid.UUID
	at     time.Time
}

// met records another holder of the lock, the zero Owner if unknown.
func (c *contenders) met(holder codec.Owner, now time.Time) {
	if !protocol.IsRedlatch(holder) {
		c.foreignAt = now
		return
	}
	c.seen = slices.DeleteFunc(c.seen, func(s contender) bool {
		return s.client == holder.Client() || now.Sub(s.at) >= seenFor
	})
	c.seen = append(c.seen, contender{holder.Client(), now})
}

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

// foreign reports whether another kind of client was met within foreignFor.
func (c *contenders) foreign(now time.Time) bool {
	return now.Sub(c.foreignAt) < foreignFor
}

func (c *contenders) forget() {
	c.counted, c.foreignAt, c.seen = time.Time{}, time.Time{}, c.seen[:0]
}

// A queue yields to other processes after a number of turns, or after a while. It waits as long
// as a woken waiter may need for an attempt: a multiple of the duration of a turn.
const (
	burstMax   = 32
	burstTime  = 20 * time.Millisecond
	yieldTimes = 20
	yieldMin   = 2 * time.Millisecond
	yieldMax   = 20 * time.Millisecond

	// Among processes that transfer the lock in bursts, it waits for bursts.
	burstTimes = 2
	burstMin   = 4 * time.Millisecond
)

// yield is how a queue lets other processes go first: until each has freed the lock as often, or
// none has for too long. The zero yield doesn't.
type yield struct {
	// turns is how often each of the others is to free the lock: once for each turn here, or once
	// in all if it frees it once per burst.
	turns int
	// least is how long each of them may hold the lock before it counts: a process with a single caller
	// releases it after each turn.
	least time.Duration
	// most is how long each of them may have the lock, 0 for no limit: an unknown process may have
	// bursts of any length.
	most time.Duration
	// patience bounds how long a contender may need to acquire the lock.
	patience time.Duration
}

// countTurn counts a turn of this process, mu held, and returns how the next caller yields.
func (q *queue) countTurn(now time.Time) yield {
	if q.ahead == 0 {
		q.aheadSince = now
	}
	q.ahead++
	took := now.Sub(q.aheadSince)
	if q.ahead < burstMax && took < burstTime {
		return yield{}
	}
	c := yield{turns: q.ahead, patience: min(max(yieldTimes*took/time.Duration(q.ahead), yieldMin), yieldMax)}
	switch {
	case q.contenders.allRedlatch(q.others, now):
		c = yield{turns: 1, least: q.burst(took) / burstTimes, patience: min(max(burstTimes*took, burstMin), burstTimes*burstTime)}
	case !q.contenders.foreign(now):
		c.most = took
	}
	q.ahead = 0
	return c
}

// burst returns the duration of a burst without delays, mu held.
func (q *queue) burst(took time.Duration) time.Duration {
	pace := took / time.Duration(q.ahead)
	if q.pace != 0 {
		pace = min(pace, q.pace+q.pace/8)
	}
	q.pace = pace
	return pace * time.Duration(q.ahead)
}

// due reports whether the next turn must yield first, mu held.
func (q *queue) due(now time.Time) bool {
	return q.ahead+1 >= burstMax || q.ahead > 0 && now.Sub(q.aheadSince) >= burstTime
}

// count records how many other processes wait, and whether they were counted.
func (q *queue) count(n int, counted bool) {
	q.mu.Lock()
	q.others, q.contenders.counted = n, time.Time{}
	if counted {
		q.contenders.counted = time.Now()
	}
	q.mu.Unlock()
}
