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

// A queue yields to other processes when it is so many turns ahead of them, or has been
// ahead for so long. It waits for as long as a waiter that was woken may need to acquire
// the lock: a multiple of what a turn takes here and now.
const (
	burstMax   = 32
	burstTime  = 20 * time.Millisecond
	yieldTimes = 20
	yieldMin   = 2 * time.Millisecond
	yieldMax   = 20 * time.Millisecond

	// Among processes that all transfer the lock within bursts it waits for bursts.
	burstTimes = 2
	burstMin   = 4 * time.Millisecond
)

// Yield is how a queue lets other processes go first: until each of them has freed the lock
// as often, or none has for too long. The zero Yield asks for nothing.
type Yield struct {
	// Turns is how often each of the others is to free the lock: once for each turn
	// here, or once in all where it does so once for many turns, as this queue does.
	Turns int
	// Span is for how long each of them may have the lock before that counts: one that
	// has a single caller frees it after each turn.
	Span time.Duration
	// Most is for how long each of them may have the lock at most, 0 for as long as its
	// turns take: the number of turns in a burst of an unknown process is not known.
	Most time.Duration
	// Patience is how long one of them may need to acquire the lock.
	Patience time.Duration
}

// countTurn counts a turn of this process, mu held, and returns how the next caller is to
// let other processes go first.
func (q *Queue) countTurn(now time.Time) Yield {
	if q.ahead == 0 {
		q.aheadSince = now
	}
	q.ahead++
	took := now.Sub(q.aheadSince)
	if q.ahead < burstMax && took < burstTime {
		return Yield{}
	}
	c := Yield{Turns: q.ahead, Patience: min(max(yieldTimes*took/time.Duration(q.ahead), yieldMin), yieldMax)}
	switch {
	case q.contenders.allRedlatch(q.others, now):
		c = Yield{Turns: 1, Span: q.burst(took) / burstTimes, Patience: min(max(burstTimes*took, burstMin), burstTimes*burstTime)}
	case !q.contenders.foreign(now):
		c.Most = took
	}
	q.ahead = 0
	return c
}

// Yielded says that the caller that has the turn let other processes go first as its Yield asked.
// Until then the callers after it are asked for the same.
func (q *Queue) Yielded() {
	q.mu.Lock()
	q.owed = Yield{}
	q.mu.Unlock()
}

// burst returns what a burst that took so long would have taken without delays, mu
// held.
func (q *Queue) burst(took time.Duration) time.Duration {
	pace := took / time.Duration(q.ahead)
	if q.pace != 0 {
		pace = min(pace, q.pace+q.pace/8)
	}
	q.pace = pace
	return pace * time.Duration(q.ahead)
}

// due reports whether the next turn must yield first, mu held.
func (q *Queue) due(now time.Time) bool {
	return q.ahead+1 >= burstMax || q.ahead > 0 && now.Sub(q.aheadSince) >= burstTime
}

// Others says how many other processes wait for the lock, and whether they were counted.
func (q *Queue) Others(n int, counted bool) {
	q.mu.Lock()
	q.others, q.contenders.counted = n, time.Time{}
	if counted {
		q.contenders.counted = time.Now()
	}
	q.mu.Unlock()
}
