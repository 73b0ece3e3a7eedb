package fairsim

import "github.com/redlatch/redlatch/internal/test/fairmodel"

// thread is a thread of a process of Redisson's, which acquires the lock again and
// again, each time in one of the ways that the API has.
type thread struct {
	p     *process
	owner string // the same for all that it does

	*waiter         // the acquisition that it is in
	began    int64  // when that did
	limit    int64  // how long it tries; 0: for ever
	leftWith int64  // the wait that is subtracted when it gives up
	lease    int64  // of its own; 0: the hold is renewed
	permits  int    // messages that came while it was not parked
	parked   *timer // what ends its rest; nil when it is not parked
	slow     *timer // what ends its patience with a subscription
}

const subscriptionTimeout = 7500

// Of the calls that queue a thread, one in so many loses its reply although the connection
// stands. It is sent again so many times, as older releases do.
const (
	repliesLost = 200
	resends     = 3

	commandTimeout = 3000
	retryInterval  = 1500
)

// start lets a new thread of the process begin.
func (p *process) start() {
	t := &thread{p: p, owner: p.owner()}
	p.threads = append(p.threads, t)
	p.after(p.sim.think(), t.begin)
}

// rest lets the thread begin again after a while.
func (t *thread) rest() { t.p.after(t.p.sim.think(), t.begin) }

// begin chooses a way to acquire, and makes the first attempt.
func (t *thread) begin() {
	s := t.p.sim
	t.began, t.limit, t.leftWith, t.lease, t.permits = s.now, 0, 0, 0, 0
	wait := fairWait
	switch n := s.rnd.IntN(100); {
	case n < tries:
		t.tryOnce()
		return
	case n < tries+unitsBug:
		// Without a lease the number of seconds is taken for milliseconds when
		// queueing, but not when giving up.
		t.limit = s.waitTime()
		wait, t.leftWith = t.limit/1000, t.limit
	case n < tries+bounded:
		t.limit = s.waitTime()
		wait, t.leftWith = t.limit, t.limit
		t.lease = s.longest() + lease
	case n < tries+bounded+leased:
		t.lease = s.longest() + lease
	}
	t.waiter = t.p.begin(t.owner, wait)
	lost := 0
	if s.losses.IntN(repliesLost) == 0 {
		lost = 1 + s.losses.IntN(resends+1)
	}
	t.send(lost, resends, t.listen)
}

func (t *thread) arguments() fairmodel.Call {
	c := fairmodel.Call{Now: t.p.wall(), Owner: t.owner, Wait: t.wait, Lease: lease}
	if t.lease > 0 {
		c.Lease = t.lease
	}
	return c
}

// tryOnce is tryLock() without a wait.
func (t *thread) tryOnce() {
	t.waiter = t.p.begin(t.owner, fairWait)
	w, held := t.waiter, false
	t.p.call(func() { held = t.p.sim.server.try(w, t.arguments()) }, func(ok bool) {
		if ok && held {
			t.hold()
			return
		}
		t.p.end(w)
		t.rest()
	})
}

// attempt runs the waiting acquire, and refused with what it answers.
func (t *thread) attempt(refused func(left int64)) {
	t.send(0, 0, refused)
}

// send is attempt where so many replies will be lost, and the call may be sent again so
// many times.
func (t *thread) send(lost, again int, refused func(left int64)) {
	w := t.waiter
	var r *refusal
	t.p.call(func() { r = t.p.sim.server.acquire(w, t.arguments()) }, func(ok bool) {
		switch {
		case !w.live:
		case !ok:
			t.fail() // an exception, whatever has become of it
		case r == nil:
			t.hold()
		case lost > 0 && again == 0:
			t.p.after(commandTimeout, func() {
				if w.live {
					t.fail()
				}
			})
		case lost > 0:
			t.p.after(commandTimeout+retryInterval+t.p.sim.losses.Int64N(250), func() {
				if w.live {
					t.send(lost-1, again-1, refused)
				}
			})
		default:
			refused(r.left)
		}
	})
}

// fail ends the acquisition with an exception: what is on the server stays.
func (t *thread) fail() {
	t.slow.stop()
	t.parked.stop()
	t.parked = nil
	t.p.end(t.waiter)
	if t.p.sim.rnd.IntN(2) == 0 {
		t.owner = t.p.owner() // another thread does what comes next
	}
	t.rest()
}

// left returns for how long the thread will try yet, and whether there is a limit.
func (t *thread) left() (int64, bool) {
	return t.limit - (t.p.sim.now - t.began), t.limit > 0
}

// giveUp is acquireFailed, after which tryLock returns false.
func (t *thread) giveUp() {
	w := t.waiter
	t.slow.stop()
	t.p.call(func() {
		v := t.p.sim.server
		v.run(func(m *fairmodel.Lock) { m.AcquireFailed(fairmodel.Call{Owner: w.owner, Wait: t.leftWith}) })
		v.sim.judge.rest(w)
		v.sim.judge.left(w.owner)
	}, func(bool) {
		t.p.end(w)
		t.rest()
	})
}

// listen subscribes, now and then slowly, and then goes into the loop.
func (t *thread) listen(int64) {
	p, w := t.p, t.waiter
	if left, limited := t.left(); limited && left <= 0 {
		t.giveUp()
		return
	}
	slowness := int64(1)
	if p.sim.rnd.IntN(100) < 3 {
		slowness = p.sim.between(1000, 7400)
	}
	t.slow = p.timer(subscriptionTimeout, func() {
		if t.limit > 0 {
			t.giveUp()
		} else {
			t.fail()
		}
	})
	slow := t.slow
	p.after(slowness, func() {
		p.reach(func() {
			if slow.stopped || !w.live {
				return
			}
			w.onMessage = t.handle
			p.subscribe(w)
		})
	})
}

// handle is what a message does, and the answer to a subscription.
func (t *thread) handle(works bool) {
	switch {
	case works && !t.slow.stopped:
		t.slow.stop()
		t.attempt(t.park)
	case works: // again, after a connection was lost: no waiter is woken
	case t.parked != nil:
		t.wake()
	default:
		t.permits++
	}
}

// park rests until there is a message or the time is over.
func (t *thread) park(ttl int64) {
	left, limited := t.left()
	switch {
	case limited && left <= 0:
		t.giveUp()
		return
	case t.permits > 0:
		t.permits--
		t.attempt(t.park)
		return
	case ttl == 0:
		ttl = t.p.sim.between(200, 300) // in truth, at once
	}
	if limited && (ttl < 0 || ttl > left) {
		ttl = left
	}
	if ttl < 0 {
		t.parked = &timer{} // until there is a message
		return
	}
	t.parked = t.p.timer(ttl, t.wake)
}

func (t *thread) wake() {
	t.parked.stop()
	t.parked = nil
	if left, limited := t.left(); limited && left <= 0 {
		t.giveUp()
		return
	}
	t.attempt(t.park)
}

// interrupt is what another thread does to this one. It reports whether it was
// waiting, where it is noticed.
func (t *thread) interrupt() bool {
	if t.waiter == nil || !t.live || !t.waits || t.parked == nil {
		return false
	}
	t.fail()
	return true
}

// hold holds the lock for a while.
func (t *thread) hold() {
	w := t.waiter
	t.p.unsubscribe(w)
	t.p.sim.judge.believes(w)
	if t.lease == 0 {
		t.p.renew(w)
	}
	t.p.after(t.p.sim.holdTime(), func() { t.p.release(w, t.rest) })
}
