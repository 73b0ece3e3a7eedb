// Package watchdog renews leases and reports losses. One goroutine serves all holds of a client.
//
// A lease's deadline is the send time of the last acknowledged call, plus the lease, less the loss
// margin, by the earlier of the wall clock and the monotonic clock. The server begins to count
// later, so a loss is reported before the server can grant the lock to another owner.
//
// A lease is renewed every third of it, by a script for up to [BatchSize] locks, with retries until
// the deadline. A fixed lease is not renewed, unless other owners' renewals may shorten the lock's
// TTL: see [Lease.Trust]. After a doubt (a lost connection, or another master) the server may have
// forgotten locks, so all leases are renewed immediately, but at most once a second.
//
// Call [Loop.Remove] before the release of a lock. A renewal that is still in flight is harmless:
// the server tests ownership, and the reply is ignored.
package watchdog

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

// Holder has a lease.
type Holder interface {
	// LockOf returns the name of the lock and its kind.
	LockOf() (name, kind string)
	// Owed returns the lease that the same owner's holds need, less than the lease or negative if
	// they need less.
	Owed() time.Duration
	// LeaseLost is called once, on the loop's goroutine, when the lease or the loop has ended. It
	// must not block. It may call the loop.
	LeaseLost(end End)
}

// Renewal is a script that renews leases.
type Renewal struct {
	// Fill fills c, a reset call, for n leases. It calls lease once for each, in order; the TTL is
	// in milliseconds.
	Fill func(c *transport.Call, n int, lease func(i int) (key, owner, ttl any))
	// Renewed decodes the i-th of n results: false means that the owner does not hold the lock.
	Renewed func(reply any, i, n int) (bool, error)
}

// Lease is one lock held by one owner. The exported fields must not change after [Loop.Add].
type Lease struct {
	// Key and Owner of the renewal, boxed strings.
	Key, Owner any
	// TTL is the lease; TTLArg is it in milliseconds, a boxed int64.
	TTL    time.Duration
	TTLArg any
	// Fixed leases are not renewed.
	Fixed bool
	// Trust is how long a confirmation counts, where other owners' renewals may shorten the
	// lock's TTL; 0: the whole lease. A longer lease, even a fixed one, is confirmed every third
	// of it.
	Trust time.Duration
	// Max is the maximum time from the grant, 0 for none.
	Max time.Duration
	// Renewal is the lease's script. Leases with the same script are batched.
	Renewal *Renewal
	// Holder has the lease.
	Holder Holder

	deadline clock.Atomic
	max      clock.Deadline // of Max; set by Hold
	last     clock.Deadline // of a fixed lease; set by Hold

	began time.Time // when the granted call was sent; set by Hold

	failure atomic.Pointer[error] // of the last renewal, nil if it succeeded

	// Guarded by Loop.mu.
	older   *Lease // in the order of Loop.Add
	newer   *Lease
	sent    time.Time // when the last confirmed call was sent
	next    time.Time // when the loop looks at the lease again
	due     time.Time // renewal time before a doubt; zero: there was none
	retry   time.Duration
	index   int
	pending bool // a renewal is in flight
	tried   bool // a renewal was started
	watched bool
}

// Deadline returns when the lease counts as lost. It is safe for concurrent use.
func (l *Lease) Deadline() clock.Deadline { return l.deadline.Load() }

// Over returns EndLease, EndMax, or 0 while the lease lasts. It is safe for concurrent use.
func (l *Lease) Over(now time.Time) End {
	switch {
	case l.deadline.Load().Passed(now):
		return EndLease
	case l.Max > 0 && l.max.Passed(now):
		return EndMax
	}
	return 0
}

// End is why a lease has ended.
type End uint8

// The ends of a lease.
const (
	EndLease     End = iota + 1 // the lease expired
	EndMax                      // Lease.Max has passed
	EndTaken                    // the server says that the owner does not hold the lock
	EndForgotten                // the same, after a doubt: see Loop.Doubted
	EndClosed                   // the loop was closed
)

// Ends returns the earlier of the deadline and Max. It is safe for concurrent use.
func (l *Lease) Ends() time.Time {
	d := l.Deadline().Time()
	if m := l.max.Time(); l.Max > 0 && m.Before(d) {
		return m
	}
	return d
}

// Final returns the end of a fixed lease or Max, the zero time if there is neither.
func (l *Lease) Final() time.Time {
	switch {
	case l.Fixed:
		return l.last.Time()
	case l.Max > 0:
		return l.max.Time()
	}
	return time.Time{}
}

// Hold starts the lease of a grant whose call was sent at sent, and reports whether it has not
// expired. Margin returns the loss margin of a lease. Call it before [Loop.Add].
func (l *Lease) Hold(sent time.Time, margin func(lease time.Duration) time.Duration) bool {
	l.deadline.Store(clock.After(sent, l.counts()-margin(l.counts())))
	l.last = clock.After(sent, l.TTL-margin(l.TTL))
	l.max = clock.After(sent, l.Max)
	l.sent, l.began = sent, sent
	l.next = l.Ends()
	if due := sent.Add(l.counts() / 3); l.confirmed() && due.Before(l.next) {
		l.next = due
	}
	return l.Over(time.Now()) == 0
}

// Began returns when the granted call was sent.
func (l *Lease) Began() time.Time { return l.began }

// Failure returns the error of the last renewal, if it failed. It is safe for concurrent use.
func (l *Lease) Failure() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *Lease) counts() time.Duration {
	if l.Trust > 0 {
		return min(l.Trust, l.TTL)
	}
	return l.TTL
}

// confirmed reports whether the lease is renewed or confirmed before its end.
func (l *Lease) confirmed() bool { return !l.Fixed || l.counts() < l.TTL }

// renewed moves the deadline for a renewal sent at sent, unless it has passed: that may have been
// seen.
func (l *Lease) renewed(sent time.Time, margin func(lease time.Duration) time.Duration) {
	if l.deadline.Load().Passed(time.Now()) {
		return
	}
	d := clock.After(sent, l.counts()-margin(l.counts()))
	if now := time.Now(); l.Fixed && l.last.Remaining(now) < d.Remaining(now) {
		d = l.last
	}
	l.deadline.Store(d)
}

// hasten makes the lease due, unless a call sent after doubted has confirmed it. The loop's mu is
// held; the caller restores the heap.
func (l *Lease) hasten(doubted time.Time) {
	if !l.renewable() || !l.sent.Before(doubted) || !l.next.After(doubted) {
		return
	}
	if l.retry == 0 {
		l.due = l.next
	}
	l.next = doubted
}

// following returns when a lease is due after a renewal sent at sent. A hastened lease keeps its
// time, or all would be due together from then on.
func (l *Lease) following(sent time.Time) time.Time {
	due, next := l.due, sent.Add(l.counts()/3)
	l.due = time.Time{}
	if due.After(sent) && due.Before(next) {
		return due
	}
	return next
}

type schedule []*Lease

var _ heap.Interface = (*schedule)(nil)

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].next.Before(s[j].next) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *schedule) Push(x any) {
	l, _ := x.(*Lease)
	l.index = len(*s)
	*s = append(*s, l)
}

func (s *schedule) Pop() any {
	old := *s
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return l
}
