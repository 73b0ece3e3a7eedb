package localqueue

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// Courtesy to other processes: when a line is so many turns ahead of them, or has
// been ahead for so long, it lets them go first. It is patient for as long as a
// waiter that was woken may need to come in: so many times what a hand-over takes
// here and now.
const (
	burstMax      = 32
	burstTime     = 20 * time.Millisecond
	courtesyTimes = 20
	courtesyMin   = 2 * time.Millisecond
	courtesyMax   = 20 * time.Millisecond

	// Among processes that all pass the lock on in bursts it is patient for bursts.
	burstTimes = 2
	burstMin   = 4 * time.Millisecond
)

// Line is the queue of one process for one lock. Whoever has the turn is the
// only one who talks to Redis about it: first to acquire the lock, then while
// holding it. The others stand in line and cost nothing. The turn goes to the
// next as soon as the release is on its way, so that the next attempt travels
// right behind it, or the lock itself goes with it, see [Line.PassWith].
//
// Get one from [Lines.Line]. Each caller either takes the turn at once, or gets
// a [Place] and waits for it; whoever has the turn passes it on exactly once.
type Line struct {
	id    lineID
	lines *Lines
	refs  int // guarded by lines.mu

	mu          sync.Mutex // guards what follows; held for a few instructions only
	busy        bool       // somebody has the turn
	first, last *Place
	sub         transport.Subscription // kept while there is a line
	state       LineState
	ahead       int // hand-overs here that others have not had as many turns for
	aheadSince  time.Time
	others      int // how many there are, as far as is known
	theirs      int // turns that they had, fewer than there are of them
	crowd       crowd
	pace        time.Duration // what a turn takes here when nothing holds it up
}

// LineState is what a line knows about its lock.
type LineState struct {
	// Known is true when Redis has answered since the line began.
	Known bool
	// Held is true while somebody in this process holds the lock.
	Held bool
	// Away is why Redis did not answer the last attempt, nil when it did.
	Away error
	// Holder is who held the lock at the last answer, the zero Owner if that is
	// not known, and TTL how long its lease had left then, 0 for a hold of this
	// process.
	Holder codec.Owner
	TTL    time.Duration
}

// Place is a place in a line.
type Place struct {
	// Ready receives when the turn has come.
	Ready chan struct{}
	// Courtesy, to be read after Ready, is how to let others go first.
	Courtesy Courtesy
	// Passed, to be read after Ready, is true when the turn came with the lock.
	Passed bool
	// Baton, to be read after Ready, is the lock itself where it was not freed; nil:
	// it was.
	Baton *Baton

	prev, next *Place
	queued     bool
	asks       bool
}

// Courtesy is how a line lets others go first: until each has freed the lock as
// often, or nobody has for too long. The zero Courtesy asks for nothing.
type Courtesy struct {
	// Turns is how often each of the others is to free the lock: once for each turn
	// here, or once in all where it does so once for many turns, as this line does.
	Turns int
	// Span is for how long each of them may have the lock before that counts: one that
	// has a single caller frees it after each turn.
	Span time.Duration
	// Most is for how long each of them may have the lock at most, 0 for as long as its
	// turns take: nobody knows how many there are to a burst of those not met yet.
	Most time.Duration
	// Patience is how long one of them may need to come in.
	Patience time.Duration
}

type lineID struct{ kind, key string }

// Lines are the lines of a client, by lock.
type Lines struct {
	self   uuid.UUID
	batons sync.Pool // of *Baton

	mu   sync.Mutex // guards byID and the refs of its lines
	byID map[lineID]*Line
	free sync.Pool
}

// NewLines returns the lines of the client called self.
func NewLines(self uuid.UUID) *Lines { return &Lines{self: self} }

// Line returns the line for a lock, which must be left with Pass or Quit.
func (ls *Lines) Line(kind, key string) *Line {
	id := lineID{kind, key}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byID[id]
	if l == nil {
		l, _ = ls.free.Get().(*Line)
		if l == nil {
			l = &Line{lines: ls, crowd: crowd{self: ls.self}}
		}
		l.id = id
		if ls.byID == nil {
			ls.byID = map[lineID]*Line{}
		}
		ls.byID[id] = l
	}
	l.refs++
	return l
}

// put gives up one reference.
func (l *Line) put() {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if l.refs--; l.refs == 0 {
		delete(l.lines.byID, l.id)
		l.state, l.ahead, l.others, l.theirs, l.pace = LineState{}, 0, 0, 0, 0
		l.crowd.forget()
		l.lines.free.Put(l)
	}
}

// TryEnter takes the turn if nobody has it. Otherwise it leaves the line, and
// reports whether it is sure that the lock cannot be had: then somebody in this
// process waits for it, too. It returns what the line knows.
func (l *Line) TryEnter() (has, refused bool, state LineState) {
	l.mu.Lock()
	has, state = !l.busy, l.state
	refused = l.busy && state.Known && state.Away == nil && (l.first != nil || !state.Held)
	l.busy = true
	l.mu.Unlock()
	if !has {
		l.put()
	}
	return has, refused, state
}

// Enter takes the turn if nobody has it, and returns nil; else it returns a place
// at the end of the line.
func (l *Line) Enter() *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		l.busy = true
		return nil
	}
	p := &Place{Ready: make(chan struct{}, 1), prev: l.last, queued: true}
	if l.last != nil {
		l.last.next = p
	} else {
		l.first = p
	}
	l.last = p
	return p
}

// Quit leaves the line from a place in it. If the turn had come meanwhile, it is
// passed on.
func (l *Line) Quit(p *Place) {
	l.mu.Lock()
	queued := p.queued
	if queued {
		l.remove(p)
	}
	l.mu.Unlock()
	if queued {
		l.put()
		return
	}
	l.PassUnused(p.Baton)
}

// remove takes a place out, mu held.
func (l *Line) remove(p *Place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	p.prev, p.next, p.queued = nil, nil, false
}

// Pass gives the turn to the next in line, or to nobody, and leaves the line.
// Held says that the lock was held and is being freed.
func (l *Line) Pass(held bool) {
	l.mu.Lock()
	p := l.first
	var idle transport.Subscription
	if p != nil {
		l.remove(p)
		if held {
			p.Passed, p.Courtesy = true, l.handOver(time.Now())
		}
	} else {
		l.busy, l.ahead = false, 0
		idle, l.sub = l.sub, nil
		l.state = LineState{}
	}
	l.state.Held = false
	l.mu.Unlock()
	if p != nil {
		p.Ready <- struct{}{} // has room: it is sent once
	}
	if idle != nil {
		idle.Close()
	}
	l.put()
}

// handOver counts a hand-over, mu held, and returns how the next should let others
// go first.
func (l *Line) handOver(now time.Time) Courtesy {
	if l.ahead == 0 {
		l.aheadSince = now
	}
	l.ahead++
	took := now.Sub(l.aheadSince)
	if l.ahead < burstMax && took < burstTime {
		return Courtesy{}
	}
	c := Courtesy{Turns: l.ahead, Patience: min(max(courtesyTimes*took/time.Duration(l.ahead), courtesyMin), courtesyMax)}
	switch {
	case l.crowd.alike(l.others, now):
		c = Courtesy{Turns: 1, Span: l.burst(took) / burstTimes, Patience: min(max(burstTimes*took, burstMin), burstTimes*burstTime)}
	case !l.crowd.strangers(now):
		c.Most = took
	}
	l.ahead = 0
	return c
}

// burst returns what a burst that took so long would have taken if nothing had held it
// up, mu held.
func (l *Line) burst(took time.Duration) time.Duration {
	pace := took / time.Duration(l.ahead)
	if l.pace != 0 {
		pace = min(pace, l.pace+l.pace/8)
	}
	l.pace = pace
	return pace * time.Duration(l.ahead)
}

// due reports whether the next hand-over is to ask for courtesy, mu held.
func (l *Line) due(now time.Time) bool {
	return l.ahead+1 >= burstMax || l.ahead > 0 && now.Sub(l.aheadSince) >= burstTime
}

// Others says how many others wait for the lock, and whether they were counted.
func (l *Line) Others(n int, counted bool) {
	l.mu.Lock()
	l.others, l.crowd.counted = n, time.Time{}
	if counted {
		l.crowd.counted = time.Now()
	}
	l.mu.Unlock()
}

// Granted says that whoever has the turn holds the lock, as owner.
func (l *Line) Granted(owner codec.Owner) {
	l.mu.Lock()
	l.state = LineState{Known: true, Held: true, Holder: owner}
	l.mu.Unlock()
}

// Refused says that an attempt found the lock held by somebody else, who has ttl
// left: one of the others has a turn.
func (l *Line) Refused(holder codec.Owner, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = LineState{Known: true, Holder: holder, TTL: ttl}
	if holder.Client() == l.crowd.self {
		return // nobody else had a turn
	}
	l.crowd.saw(holder, time.Now())
	if l.theirs++; l.theirs >= l.others {
		l.theirs, l.ahead = 0, max(0, l.ahead-1)
	}
}

// Away says why Redis did not answer.
func (l *Line) Away(err error) {
	l.mu.Lock()
	l.state.Away = err
	l.mu.Unlock()
}

// State returns what the line knows.
func (l *Line) State() LineState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// HasNext reports whether somebody stands in line.
func (l *Line) HasNext() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first != nil
}

// IsNext reports whether p is the first in line.
func (l *Line) IsNext(p *Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first == p
}

// Asks says whether p, while it stands in line, asks Redis about the lock: then it is
// not ready to take it over.
func (l *Line) Asks(p *Place, asks bool) {
	l.mu.Lock()
	p.asks = asks
	l.mu.Unlock()
}

// Subscription returns the line's subscription, nil when it has none.
func (l *Line) Subscription() transport.Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sub
}

// Keep makes sub the line's, to be used by those who come after. Only who has the
// turn may call it, and only when there is none. Nil takes a broken one out.
func (l *Line) Keep(sub transport.Subscription) {
	l.mu.Lock()
	l.sub = sub
	l.mu.Unlock()
}

// Rest closes the subscription if nobody is left to use it.
func (l *Line) Rest() {
	l.mu.Lock()
	var idle transport.Subscription
	if l.first == nil {
		idle, l.sub = l.sub, nil
	}
	l.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}
