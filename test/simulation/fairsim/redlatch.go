package fairsim

import (
	"slices"

	"github.com/redlatch/redlatch/internal/test/fairmodel"
)

// queuedWaiter is a waiter of a process of Redlatch's that the server has queued. The
// waiters of a process are in the order of the queue, and only the first one asks without
// a message.
type queuedWaiter struct {
	p *process
	*waiter
	until int64 // when its own wait is over; 0: never

	inQueue   bool
	listening bool // the subscription was acknowledged
	busy      bool // an attempt is under way
	again     bool // another one is due after that
	leaving   bool // none is: the wait is over
	left      int64
	pause     int64 // before the last attempt at a free lock
	poll      *timer
	over      *timer
}

// goroutine lets a new worker of the process begin.
func (p *process) goroutine() { p.after(p.sim.think(), p.lock) }

// lock acquires the lock in one of the ways that the API has.
func (p *process) lock() {
	s := p.sim
	n := s.rnd.IntN(100)
	if n < tries {
		p.tryLock()
		return
	}
	var until int64
	wait := fairWait
	if n < tries+bounded {
		wait = s.waitTime()
		until = s.now + wait
	} else if n < tries+bounded+cancelled {
		until = s.now + s.waitTime()
	}
	p.queue(wait, until)
}

func (p *process) tryLock() {
	w, held := p.begin(p.owner(), fairWait), false
	p.call(func() { held = p.sim.server.try(w, p.arguments(w)) }, func(ok bool) {
		switch {
		case ok && held:
			p.hold(w)
		case ok:
			p.end(w)
			p.goroutine()
		default:
			p.end(w)
			p.letGo(w.owner, p.goroutine)
		}
	})
}

// queue acquires the lock, waiting for it.
func (p *process) queue(wait, until int64) {
	s := &queuedWaiter{p: p, waiter: p.begin(p.owner(), wait), until: until}
	if until > 0 {
		s.over = p.timer(until-p.sim.now, s.giveUp)
	}
	s.attempt()
}

func (p *process) arguments(w *waiter) fairmodel.Call {
	return fairmodel.Call{Now: p.wall(), Owner: w.owner, Wait: w.wait, Lease: lease}
}

// attempt asks for the lock, once at a time.
func (s *queuedWaiter) attempt() {
	if s.busy || s.leaving {
		s.again = true
		return
	}
	s.busy, s.again = true, false
	s.poll.stop()
	var r *refusal
	s.p.call(func() { r = s.p.sim.server.acquire(s.waiter, s.p.arguments(s.waiter)) }, func(ok bool) {
		s.busy = false
		switch {
		case !ok:
			s.inDoubt()
		case r == nil && s.leaving:
			s.p.leave(s)
			s.resolve()
		case r == nil:
			s.p.leave(s)
			s.over.stop()
			s.p.unsubscribe(s.waiter)
			s.p.hold(s.waiter)
		case s.leaving:
			s.dequeue()
		default:
			s.refused(r)
		}
	})
}

// refused takes in that the waiter is queued.
func (s *queuedWaiter) refused(r *refusal) {
	switch {
	case !s.inQueue:
		s.p.addWaiter(s)
		s.onMessage = s.handle
		s.p.reach(func() {
			if s.onMessage != nil {
				s.p.subscribe(s.waiter)
			}
		})
	case r.queued:
		s.p.leave(s)
		s.p.addWaiter(s) // its place was lost
	}
	if r.free {
		s.p.ask(s, r.head)
	}
	s.left = leaseLeft(s, r)
	switch {
	case s.again:
		s.attempt()
	case s.p.group[0] == s:
		s.plan()
	}
}

// leaseLeft is what the holder has left, as far as a refusal tells; -1: not known.
func leaseLeft(s *queuedWaiter, r *refusal) int64 {
	switch {
	case r.queued && r.free:
		return 0
	case r.queued && r.head != s.owner, r.left == 0 && !r.free:
		return -1
	}
	return r.left
}

// plan sets the time of the poll, for the first of the process.
func (s *queuedWaiter) plan() {
	nap := pollCap.Milliseconds()
	switch {
	case s.left > 0:
		nap = min(nap, s.left+1)
		s.pause = 0
	case s.left == 0:
		s.pause = min(max(2*s.pause, 20), 1000)
		if s.pause == 1000 {
			s.p.heartbeat.idle()
		}
		nap = s.p.sim.between(s.pause*3/4, s.pause*5/4)
	default:
		s.pause = 0
	}
	s.poll.stop()
	s.poll = s.p.timer(nap, s.attempt)
}

// handle is what a message does, and the answer to a subscription.
func (s *queuedWaiter) handle(works bool) {
	if works && s.listening && s.inQueue {
		s.p.group[0].attempt() // there was a gap: what was missed shows in the answer
		return
	}
	s.listening = s.listening || works
	s.attempt()
}

// giveUp ends the wait.
func (s *queuedWaiter) giveUp() {
	if s.leaving {
		return
	}
	s.leaving = true
	if !s.busy {
		s.dequeue()
	}
}

// dequeue takes the owner out of the queue.
func (s *queuedWaiter) dequeue() {
	s.p.leave(s)
	s.p.end(s.waiter)
	s.p.giveUp(s.waiter, s.p.goroutine)
}

// inDoubt is for an attempt whose reply was lost: its owner is not used again.
func (s *queuedWaiter) inDoubt() {
	s.p.leave(s)
	s.over.stop()
	s.resolve()
	if !s.leaving {
		s.p.queue(s.wait, s.until)
	}
}

// resolve sees to it that the owner has neither the lock nor a place.
func (s *queuedWaiter) resolve() {
	next := func() {}
	if s.leaving {
		next = s.p.goroutine
	}
	s.p.end(s.waiter)
	s.p.giveUp(s.waiter, func() { s.p.letGo(s.owner, next) })
}

// giveUp sends a give-up until it has arrived.
func (p *process) giveUp(w *waiter, then func()) {
	p.call(func() {
		v := p.sim.server
		v.run(func(m *fairmodel.Lock) {
			m.GiveUp(fairmodel.Call{Now: p.wall(), Owner: w.owner, Wait: w.wait})
		})
		v.sim.judge.left(w.owner)
	}, func(ok bool) {
		if !ok {
			p.giveUp(w, then)
			return
		}
		then()
	})
}

// hold holds the lock for a while.
func (p *process) hold(w *waiter) {
	p.sim.judge.believes(w)
	p.renew(w)
	p.after(p.sim.holdTime(), func() { p.release(w, p.goroutine) })
}

// addWaiter adds a waiter behind the others, and begins the heartbeat.
func (p *process) addWaiter(s *queuedWaiter) {
	s.inQueue = true
	p.group = append(p.group, s)
	if len(p.group) == 1 {
		p.beginHeartbeat()
	}
}

// leave removes a waiter. The next one polls in its place.
func (p *process) leave(s *queuedWaiter) {
	if !s.inQueue {
		return
	}
	s.inQueue = false
	s.poll.stop()
	led := p.group[0] == s
	p.group = slices.DeleteFunc(p.group, func(o *queuedWaiter) bool { return o == s })
	switch {
	case len(p.group) == 0:
		p.endHeartbeat()
	case led:
		p.group[0].left = s.left
		p.group[0].plan()
	}
}

// ask makes another waiter of this process ask, if it has one of that name.
func (p *process) ask(from *queuedWaiter, owner string) {
	for _, s := range p.group {
		if s.owner == owner && s != from {
			s.attempt()
		}
	}
}
