package fairqueue

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	// keepOpen is how long a subscription is kept and a lock counts as contended after a caller had to wait.
	keepOpen = time.Second
	sweeping = keepOpen / 2
)

// A subscription holds an owner and the subscription to its channel. Once the hold has ended, another acquisition may
// reuse both, unless the outcome of a call is unknown.
type subscription struct {
	owner  codec.Owner
	text   any // owner as a string, boxed
	sub    transport.Subscription
	queues *Queues

	// Guarded by queues.mu.
	of    *group // the group that keeps it, or nil
	until time.Time
	idle  bool
}

func (s *subscription) Owner() (codec.Owner, any) { return s.owner, s.text }

// get takes a working subscription from the pool, or returns nil if there is none. contended reports whether a caller
// in this process is waiting for the lock or was within the last second. The caller must keep or close the
// subscription.
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

// works reports whether the subscription still works. It discards an event that was meant for an earlier caller.
func (s *subscription) works() bool {
	select {
	case _, works := <-s.sub.Events():
		return works
	default:
		return true
	}
}

// keep keeps the subscription of a hold for a second if the acquisition had to wait. Otherwise it doesn't change how
// long the subscription is kept.
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

func (s *subscription) Put() {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	if s.of != nil && !s.idle {
		s.idle = true
		s.of.idle = append(s.of.idle, s)
	}
}

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

// take is called with queues.mu held.
func (g *group) take(s *subscription) {
	delete(g.kept, s)
	if last := len(g.idle) - 1; s.idle && g.idle[last] == s {
		g.idle = slices.Delete(g.idle, last, last+1)
	} else if s.idle {
		g.idle = slices.DeleteFunc(g.idle, func(other *subscription) bool { return other == s })
	}
	s.of, s.idle = nil, false
}

// arm schedules a sweep if none is scheduled. It is called with mu held.
func (qs *Queues) arm() {
	if qs.timer == nil && !qs.closed {
		qs.timer = time.AfterFunc(sweeping, func() { qs.engine.Go(qs.sweep) })
	}
}

// sweep closes expired subscriptions and deletes unused groups. It schedules another sweep if needed.
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
