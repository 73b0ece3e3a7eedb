package fairsim

import "github.com/redlatch/redlatch/internal/test/fairmodel"

// server is the one that has the lock.
type server struct {
	sim       *Sim
	lock      *fairmodel.Lock
	expires   int64 // when the lock does, while it is held
	freeSince int64
	listeners map[string]*listener // by owner: each has a channel of its own
}

// listener is a subscription to an owner's channel.
type listener struct {
	waiter *waiter
	link   int // the connection of its process that it is on
}

// run runs a script, or what else changes the lock in one step.
func (v *server) run(script func(m *fairmodel.Lock)) {
	v.expire()
	m := v.lock
	wasFree := m.IsFree()
	m.PTTL = v.expires - v.sim.now
	script(m)
	if m.IsFree() {
		if !wasFree {
			v.freeSince = v.sim.now
		}
	} else {
		v.expires = v.sim.now + m.PTTL
	}
	for _, owner := range m.Pruned {
		v.sim.judge.removed(owner, pruned)
	}
	for _, owner := range m.Notified {
		v.publish(owner)
	}
	v.sim.judge.front()
	m.Pruned, m.Notified = m.Pruned[:0], m.Notified[:0]
}

// expire frees a lock whose lease is over, as of when it was.
func (v *server) expire() {
	v.sim.judge.account()
	if !v.lock.IsFree() && v.expires <= v.sim.now {
		clear(v.lock.Counts)
		v.freeSince = v.expires
		v.sim.judge.expired()
	}
}

// publish tells an owner that the lock is free.
func (v *server) publish(owner string) {
	l := v.listeners[owner]
	if l == nil {
		return
	}
	p := l.waiter.of
	p.after(v.sim.latency(), func() {
		if p.link == l.link && l.waiter.onMessage != nil {
			l.waiter.onMessage(false)
		}
	})
}

// drop ends a process's subscriptions.
func (v *server) drop(p *process) {
	for owner, l := range v.listeners {
		if l.waiter.of == p {
			delete(v.listeners, owner)
		}
	}
}

// refusal is what an acquire that was refused answers.
type refusal struct {
	left   int64
	queued bool   // was queued now
	free   bool   // the lock is
	head   string // of the queue
}

// acquire runs the waiting acquire. It returns nil when the lock was granted.
func (v *server) acquire(w *waiter, c fairmodel.Call) *refusal {
	var r *refusal
	v.run(func(m *fairmodel.Lock) {
		if left, refused := m.Acquire(c).(int64); refused {
			r = &refusal{left: left, free: m.IsFree(), head: m.Queue[0]}
		}
	})
	if r == nil {
		v.sim.judge.granted(w)
	} else {
		r.queued = v.sim.judge.refused(w)
	}
	return r
}

// try runs the acquire that never queues, and reports whether the lock was granted.
func (v *server) try(w *waiter, c fairmodel.Call) bool {
	held := false
	v.run(func(m *fairmodel.Lock) { held = m.Try(c) == nil })
	if held {
		v.sim.judge.granted(w)
	}
	return held
}

// release frees the lock if the owner has it.
func (v *server) release(now int64, owner string) {
	v.run(func(m *fairmodel.Lock) {
		if m.Counts[owner] > 0 {
			m.Release(fairmodel.Call{Now: now, Owner: owner})
		}
	})
}

// renew gives the owner's hold a whole lease again.
func (v *server) renew(owner string) {
	v.run(func(m *fairmodel.Lock) {
		if m.Counts[owner] > 0 {
			m.PTTL = lease
		}
	})
}
