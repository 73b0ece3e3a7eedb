package watchdog

import (
	"container/heap"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
)

// Holder is told when its lease is over.
type Holder interface {
	// LeaseLost is called once, on the loop's goroutine, when the lease is lost
	// or the loop closes. It must not block and may call the loop.
	LeaseLost(cause error)
}

// Lease is one lock held by one owner. Fill the exported fields, then hand it
// to [Loop.Add]; they stay as they are from then on.
type Lease struct {
	// Key and Owner are the arguments of the renewal, strings boxed once.
	Key, Owner any
	// TTL is the lease; TTLArg the same in milliseconds, an int64 boxed once.
	TTL    time.Duration
	TTLArg any
	// Fixed leases are not renewed.
	Fixed bool
	// Holder learns that the lease is over.
	Holder Holder

	deadline clock.Atomic

	// Guarded by Loop.mu.
	next    time.Time // when the loop looks at the lease again
	retry   time.Duration
	index   int
	pending bool // a renewal is in flight
	watched bool
}

// Deadline returns the moment at which the lease counts as lost. Safe for
// concurrent use.
func (l *Lease) Deadline() clock.Deadline { return l.deadline.Load() }

// Hold sets the first deadline, for a grant whose call was sent at sent, and
// reports whether anything is left of the lease. Call it before [Loop.Add].
func (l *Lease) Hold(sent time.Time, margin time.Duration) bool {
	d := clock.After(sent, l.TTL-margin)
	l.deadline.Store(d)
	l.next = d.Time()
	if !l.Fixed {
		l.next = sent.Add(l.TTL / 3)
	}
	return !d.Passed(time.Now())
}

// renewed moves the deadline for a renewal that was sent at sent. A deadline
// that has passed is left: the loss it stands for may have been seen already.
func (l *Lease) renewed(sent time.Time, margin time.Duration) {
	if l.deadline.Load().Passed(time.Now()) {
		return
	}
	l.deadline.Store(clock.After(sent, l.TTL-margin))
}

// schedule is a heap of leases by the time at which they need attention.
type schedule []*Lease

var _ heap.Interface = (*schedule)(nil)

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].next.Before(s[j].next) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push is part of heap.Interface.
func (s *schedule) Push(x any) {
	l, _ := x.(*Lease) // only leases are pushed
	l.index = len(*s)
	*s = append(*s, l)
}

// Pop is part of heap.Interface.
func (s *schedule) Pop() any {
	old := *s
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return l
}
