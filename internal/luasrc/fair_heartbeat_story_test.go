package luasrc

import (
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// fairKeep is for how long heartbeats keep a place here.
const fairKeep = int64(15000)

// own is an owner of the process whose heartbeat it is.
type own struct {
	owner string
	wait  int64
}

// beat is a heartbeat that knows nothing of the head and looks at the whole queue.
func (f *telling) beat(now int64, mine ...own) *telling { return f.beatFor(now, "", 64, mine...) }

func (f *telling) beatFor(now int64, alive string, window int, mine ...own) *telling {
	var others []other
	if alive != "" {
		others = append(others, other{owner: alive, lives: true})
	}
	return f.beatKnowing(now, others, window, mine...)
}

// other is what is known of an owner of another process.
type other struct {
	owner string
	wait  int64
	lives bool
}

func (f *telling) beatKnowing(now int64, others []other, window int, mine ...own) *telling {
	return f.fair("heartbeat", func(l *Fair, c *transport.Call) {
		fillBeat(l, c, now, Beat{Keep: fairKeep, FairWait: fairWait, Window: window}, mine, others)
	})
}

// fillBeat fills in a whole heartbeat.
func fillBeat(l *Fair, c *transport.Call, now int64, b Beat, mine []own, others []other) {
	b.Waiters = len(mine)
	l.Heartbeat(c, now, b)
	for _, o := range mine {
		AddWaiter(c, o.owner, o.wait)
	}
	for _, o := range others {
		AddOther(c, reply.Other{Owner: o.owner, Wait: o.wait, Living: o.lives})
	}
}

// finds checks the reply of a heartbeat: what the lock has left, which owners are
// in front, and how many are queued; and that none of its owners is missing.
func (f *telling) finds(left any, length int, front ...entry) {
	f.misses(left, length, []any{}, front...)
}

// misses is finds with the owners that are missing.
func (f *telling) misses(left any, length int, missing []any, front ...entry) {
	places := []any{}
	for _, s := range front {
		text := ""
		if s.deadline != none {
			text = strconv.FormatInt(s.deadline, 10)
		}
		places = append(places, s.owner, text)
	}
	f.gives([]any{left, places, missing, int64(length)})
}

// none is the deadline of an entry without one.
const none = int64(0)

// evict is an eviction of these, with the deadlines that they had.
func (f *telling) evict(now int64, dead ...entry) *telling {
	var pairs []string
	for _, s := range dead {
		text := ""
		if s.deadline != none {
			text = strconv.FormatInt(s.deadline, 10)
		}
		pairs = append(pairs, s.owner, text)
	}
	return f.evictAs(now, pairs...)
}

// evictAs is evict with deadlines as they are written.
func (f *telling) evictAs(now int64, pairs ...string) *telling {
	var dead []reply.Place
	for pair := range slices.Chunk(pairs, 2) {
		dead = append(dead, reply.Place{Owner: pair[0], Deadline: pair[1]})
	}
	return f.fair("eviction", func(l *Fair, c *transport.Call) { l.Evict(c, now, fairKeep, dead) })
}

func (f *telling) nudge(owner string) *telling {
	return f.fair("nudge of "+owner, func(l *Fair, c *transport.Call) { l.Nudge(c, owner) })
}
