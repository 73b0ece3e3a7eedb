package fairsim

import (
	"slices"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
)

// process is one that shares the lock, from its start until it is killed.
type process struct {
	sim      *Sim
	redlatch bool
	id       uuid.UUID
	numbers  int64
	skew     int64 // of the clock with which it reckons, to the server's
	ahead    int64 // of its own clock, to the server's

	dead         bool
	stalledUntil int64
	troubled     int64 // until when something hindered it
	connected    bool
	link         int       // counts connections
	postponed    []func()  // what is to be done when it is connected again
	waiters      []*waiter // those that wait or hold
	blindUntil   int64     // redlatch: listeners cannot be counted until then

	threads   []*thread       // redisson
	heartbeat *heartbeat      // redlatch: of the queue, while it has waiters there
	group     []*queuedWaiter // redlatch: its waiters that are queued, the first one first
}

// owner returns an owner that was never used.
func (p *process) owner() string {
	p.numbers++
	return codec.NewOwner(p.id, p.numbers).String()
}

// now is the time that the process sends, in milliseconds.
func (p *process) wall() int64 { return p.sim.now + p.skew }

// after plans do as the process's own: it waits while the process stands still, and
// never comes when it is killed.
func (p *process) after(d int64, do func()) {
	p.sim.after(d, func() { p.do(do) })
}

func (p *process) do(do func()) {
	switch {
	case p.dead:
	case p.sim.now < p.stalledUntil:
		p.sim.after(p.stalledUntil-p.sim.now, func() { p.do(do) })
	default:
		do()
	}
}

// timer plans do unless it is stopped before.
func (p *process) timer(d int64, do func()) *timer {
	t := &timer{}
	p.after(d, func() {
		if !t.stopped {
			t.stopped = true
			do()
		}
	})
	return t
}

type timer struct{ stopped bool }

// stop stops a timer that may be nil or over.
func (t *timer) stop() {
	if t != nil {
		t.stopped = true
	}
}

// call sends a command: run is what it does on the server, done gets whether its reply
// came. If it did not, it may have been run or not. A process without a connection sends
// when it has one.
func (p *process) call(run func(), done func(ok bool)) {
	if !p.connected {
		p.postponed = append(p.postponed, func() { p.call(run, done) })
		return
	}
	link := p.link
	p.sim.after(p.sim.latency(), func() {
		if p.link != link {
			p.after(0, func() { done(false) }) // lost on its way there
			return
		}
		run()
		p.after(p.sim.latency(), func() { done(p.link == link) })
	})
}

// reach runs do when the process has a connection.
func (p *process) reach(do func()) {
	if p.connected {
		do()
		return
	}
	p.postponed = append(p.postponed, do)
}

// disconnect takes the process's connections away for d milliseconds.
func (p *process) disconnect(d int64) {
	p.link++
	p.connected = false
	p.sim.server.drop(p)
	p.restless()
	link := p.link
	p.after(d, func() {
		if p.link == link {
			p.reconnect()
		}
	})
}

func (p *process) reconnect() {
	p.connected = true
	p.troubled = p.sim.now + 300
	p.restless()
	for _, w := range p.waiters {
		if w.onMessage != nil {
			p.subscribe(w)
		}
	}
	postponed := p.postponed
	p.postponed = nil
	for _, do := range postponed {
		p.after(p.sim.between(0, 300), do)
	}
	if p.redlatch {
		p.reconnected()
	}
}

// begin returns a waiter of this process for a new caller.
func (p *process) begin(owner string, wait int64) *waiter {
	w := &waiter{owner: owner, of: p, wait: wait, live: true}
	p.waiters = append(p.waiters, w)
	return w
}

// end ends a waiter, and its subscription.
func (p *process) end(w *waiter) {
	if !w.live {
		return
	}
	p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	p.unsubscribe(w)
	p.sim.judge.ends(w)
}

// unsubscribe ends a waiter's subscription.
func (p *process) unsubscribe(w *waiter) {
	if w.onMessage == nil {
		return
	}
	w.onMessage = nil
	link := p.link
	p.sim.after(p.sim.latency(), func() {
		if l := p.sim.server.listeners[w.owner]; l != nil && l.waiter == w && p.link == link {
			delete(p.sim.server.listeners, w.owner)
		}
	})
}

// subscribe sends the subscription of a waiter, on the present connection.
func (p *process) subscribe(w *waiter) {
	link := p.link
	p.sim.after(p.sim.latency(), func() {
		if p.link != link || w.onMessage == nil {
			return // the next connection does it, or it was ended again
		}
		p.sim.server.listeners[w.owner] = &listener{w, link}
		w.heard = p.sim.now
		p.after(p.sim.latency(), func() {
			if p.link == link && w.onMessage != nil {
				w.onMessage(true)
			}
		})
	})
}

// stall makes the process stand still for d milliseconds.
func (p *process) stall(d int64) {
	p.stalledUntil = max(p.stalledUntil, p.sim.now+d)
	p.troubled = max(p.troubled, p.stalledUntil)
	p.sim.after(d, p.restless)
	p.restless()
}

// kill ends the process. What it has on the server stays there, but for its
// connections.
func (p *process) kill() {
	p.dead = true
	p.link++
	p.sim.server.drop(p)
	for _, w := range p.waiters {
		p.sim.judge.ends(w)
	}
	p.waiters, p.heartbeat = nil, nil
}

// renew renews a hold until it ends.
func (p *process) renew(w *waiter) {
	p.after(renewTime, func() {
		if w.holds {
			p.call(func() { p.sim.server.renew(w.owner) }, func(bool) {})
			p.renew(w)
		}
	})
}

// release ends a hold, and runs then when the server has done it.
func (p *process) release(w *waiter, then func()) {
	p.end(w)
	p.letGo(w.owner, then)
}

// letGo frees the lock if the owner has it, however long it takes.
func (p *process) letGo(owner string, then func()) {
	p.call(func() { p.sim.server.release(p.wall(), owner) }, func(ok bool) {
		if !ok {
			p.letGo(owner, then)
			return
		}
		then()
	})
}

// hideListeners makes the process unable to count listeners for d milliseconds.
func (p *process) hideListeners(d int64) {
	p.blindUntil = p.sim.now + d
	p.sim.after(d, p.restless)
}
