package localqueue

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
)

const (
	// seenFor is how long a Redlatch client counts after it was seen.
	seenFor = 5 * time.Second
	// foreignFor is how long another kind of client is expected to return after it was seen.
	foreignFor = time.Minute
	countedFor = time.Second
)

// contenders records the other processes that want the lock. Redlatch clients release it once per burst of turns, and
// other clients after each turn. All contenders are assumed to be Redlatch clients if at least as many Redlatch clients
// as there are subscribers have held the lock within the last seenFor, and no other client has held it within the last
// foreignFor.
type contenders struct {
	self      uuid.UUID
	counted   time.Time // time of the last count; zero if the number is a guess
	foreignAt time.Time
	seen      []contender
}

type contender struct {
	client uuid.UUID
	at     time.Time
}

// met records that another process holds the lock. The holder is the zero Owner if it is unknown.
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

func (c *contenders) foreign(now time.Time) bool {
	return now.Sub(c.foreignAt) < foreignFor
}

func (c *contenders) forget() {
	c.counted, c.foreignAt, c.seen = time.Time{}, time.Time{}, c.seen[:0]
}

// A queue yields to other processes after burstMax turns or burstTime. It waits for a multiple of a turn's duration.
const (
	burstMax   = 32
	burstTime  = 20 * time.Millisecond
	yieldTimes = 20
	yieldMin   = 2 * time.Millisecond
	yieldMax   = 20 * time.Millisecond

	burstTimes = 2
	burstMin   = 4 * time.Millisecond
)

// yield describes how a queue lets other processes go first. It lasts until each of them has released the lock often
// enough, or until none has done so for too long. The zero yield does not wait.
type yield struct {
	// turns is how many times each of the other processes must release the lock: once for each turn taken here, or once
	// per burst.
	turns int
	// least is how long each of the others must have had the lock before its release counts as the end of a burst. A
	// process with a single caller releases the lock after each turn.
	least time.Duration
	// most is how long each of the others may have the lock before the yield ends, or 0 for no limit. It is set if their
	// kind of client is unknown, because they may hold the lock for a whole burst.
	most time.Duration
	// patience is how long the queue waits for the next release before it stops yielding.
	patience time.Duration
}

// countTurn counts a turn and returns how the next caller must yield. q.mu must be held.
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

// burst estimates how long the burst would have taken without delays. q.mu must be held.
func (q *queue) burst(took time.Duration) time.Duration {
	pace := took / time.Duration(q.ahead)
	if q.pace != 0 {
		pace = min(pace, q.pace+q.pace/8)
	}
	q.pace = pace
	return pace * time.Duration(q.ahead)
}

// due reports whether this turn is the last of its burst, so that the next caller must yield. q.mu must be held.
func (q *queue) due(now time.Time) bool {
	return q.ahead+1 >= burstMax || q.ahead > 0 && now.Sub(q.aheadSince) >= burstTime
}

func (q *queue) count(n int, counted bool) {
	q.mu.Lock()
	q.others, q.contenders.counted = n, time.Time{}
	if counted {
		q.contenders.counted = time.Now()
	}
	q.mu.Unlock()
}
