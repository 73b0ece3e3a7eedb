package fairqueue

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	// keepOpen is how long a subscription is kept, and a lock counts as contended, after a wait.
	keepOpen = time.Second
	// sweeping is the interval between sweeps for expired subscriptions.
	sweeping = keepOpen / 2
)

// subscription is an owner and the subscription to its channel, kept for a second after an acquisition that had to
// wait. Once the hold has ended and nothing about the owner is in doubt, another acquisition of the lock may reuse
// both.
type subscription struct {
	owner  codec.Owner
	text   any // the owner's, boxed
	sub    transport.Subscription
	queues *Queues

	// Guarded by queues.mu.
	of    *group // nil if it is no longer kept
	until time.Time
	idle  bool
}

// Owner returns the owner and its text.
func (s *subscription) Owner() (codec.Owner, any) { return s.owner, s.text }

// get returns a working subscription, or nil, and whether a caller in this process is waiting for the lock, or was
// within the last second. The caller must keep or close the subscription.
func (qs *Queues) get(id lockID) (s *subscription, contended bool) {
	qs.mu.Lock()
	var broken []*subscription
	if g := qs.groups[id]; g != nil {
		contended = g.users > 0 || time.Now().Before(g.contended)
		for s == nil && len(g.idle) > 0 {
			s = g.idle[len(g.idle)-1]
			g.take(s)
			if !s.works() {
				broken, s = append(broken, s), nil
			}
		}
	}
	qs.mu.Unlock()
	closeAll(broken)
	return s, contended
}

func closeAll(all []*subscription) {
	for _, s := range all {
		s.sub.Close()
	}
}

// works reports whether the subscription works, and drops an event left for an earlier caller: the next caller makes
// its attempt after this.
func (s *subscription) works() bool {
	select {
	case _, works := <-s.sub.Events():
		return works
	default:
		return true
	}
}

// keep keeps a subscription with a hold: for a second if the acquisition waited, otherwise for what remains of its
// current second.
func (qs *Queues) keep(k Kind, name string, s *subscription, waited bool) {
	now := time.Now()
	qs.mu.Lock()
	if waited {
		s.until = now.Add(keepOpen)
	}
	kept := !qs.closed && now.Before(s.until)
	if kept {
		s.of, s.idle = qs.group(k, name), false
		s.of.kept[s] = struct{}{}
		qs.arm()
	}
	qs.mu.Unlock()
	if !kept {
		s.sub.Close()
	}
}

// Put implements acquire.Reusable.
func (s *subscription) Put() {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	if s.of != nil && !s.idle {
		s.idle = true
		s.of.idle = append(s.of.idle, s)
	}
}

// Close implements acquire.Reusable.
func (s *subscription) Close() {
	s.queues.mu.Lock()
	kept := s.of != nil && !s.idle
	if kept {
		s.of.take(s)
	}
	s.queues.mu.Unlock()
	if kept {
		s.sub.Close()
	}
}

// take removes a subscription, queues.mu held.
func (g *group) take(s *subscription) {
	delete(g.kept, s)
	if last := len(g.idle) - 1; s.idle && g.idle[last] == s {
		g.idle = slices.Delete(g.idle, last, last+1)
	} else if s.idle {
		g.idle = slices.DeleteFunc(g.idle, func(other *subscription) bool { return other == s })
	}
	s.of, s.idle = nil, false
}

// arm schedules a sweep, mu held.
func (qs *Queues) arm() {
	if qs.timer == nil && !qs.closed {
		qs.timer = time.AfterFunc(sweeping, func() { qs.engine.Go(qs.sweep) })
	}
}

// sweep ends expired subscriptions and forgets locks without any. It schedules another sweep if needed; leaving
// waiters also do.
func (qs *Queues) sweep() {
	now := time.Now()
	qs.mu.Lock()
	qs.timer = nil
	var over []*subscription
	for id, g := range qs.groups {
		for s := range g.kept {
			if !now.Before(s.until) {
				g.take(s)
				over = append(over, s)
			}
		}
		switch {
		case len(g.kept) == 0 && g.users > 0:
		case len(g.kept) == 0 && !now.Before(g.contended):
			delete(qs.groups, id)
		default:
			qs.arm()
		}
	}
	qs.mu.Unlock()
	closeAll(over)
}

func (qs *Queues) close() {
	qs.mu.Lock()
	qs.closed = true
	if qs.timer != nil {
		qs.timer.Stop()
	}
	var all []*subscription
	for _, g := range qs.groups {
		for s := range g.kept {
			g.take(s)
			all = append(all, s)
		}
	}
	qs.mu.Unlock()
	closeAll(all)
}
