// Package watchdog renews leases and reports losses, on one goroutine for all holds of a client. A lease's deadline is
// the send time of the last acknowledged call, plus the lease, less the loss margin. It passes when either the wall
// clock or the monotonic clock reaches it, so that a loss is reported before the server can grant the lock again.
// Leases are renewed every third of their duration, in batches of up to [BatchSize], and after a doubt, that is,
// whenever the server may have forgotten a lock because a connection was lost or the master has changed. Call
// [Loop.Remove] before a release. A renewal that is still in flight is harmless, because the script checks the owner.
package watchdog

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

// Holder is the holder of a lease.
type Holder interface {
	LockOf() (name, kind string)
	// Owed returns the lease that all holds of the same owner need. A result below this lease's TTL, even a negative one,
	// means that the other holds need less.
	Owed() time.Duration
	// LeaseLost is called once, either on the loop's goroutine when the lease ends or by Loop.Close. It must not block. It
	// may call the loop's methods.
	LeaseLost(end End)
}

// Renewal is a script that renews leases.
type Renewal struct {
	// Fill turns c, which must have been reset, into the call that renews n leases. It calls lease once for each of
	// them, in order. TTLs are in milliseconds.
	Fill func(c *transport.Call, n int, lease func(i int) (key, owner, ttl any))
	// Renewed decodes the i-th of n results. A result of false means that the lock is not held.
	Renewed func(reply any, i, n int) (bool, error)
}

// Lease is the lease of one owner's lock. Exported fields must not change after [Loop.Add].
type Lease struct {
	// Key and Owner are boxed strings.
	Key, Owner any
	// TTL is the lease, and TTLArg is the lease in milliseconds, as a boxed int64.
	TTL    time.Duration
	TTLArg any
	// Fixed is true if the lease is not renewed.
	Fixed bool
	// Trust is how long a confirmation is trusted if renewals by other owners may shorten the lock's TTL; 0 means the
	// whole lease. A lease that is longer than Trust, even a fixed one, is confirmed every third of Trust.
	Trust time.Duration
	// Max is the maximum duration of the hold, counted from the grant, or 0 for no limit.
	Max time.Duration
	// Renewal is the script that renews the lease. Leases with the same script are renewed in batches.
	Renewal *Renewal
	Holder  Holder

	deadline clock.Atomic
	max      clock.Deadline // end of Max; set by Hold
	last     clock.Deadline // end of a fixed lease; set by Hold

	began time.Time // set by Hold

	failure atomic.Pointer[error]

	// Guarded by Loop.mu.
	older   *Lease // neighbors in the order of Loop.Add
	newer   *Lease
	sent    time.Time // send time of the last confirmed call
	next    time.Time // when the loop checks the lease again
	due     time.Time // when the renewal was due before a doubt hastened it, or zero
	retry   time.Duration
	index   int
	pending bool
	tried   bool
	watched bool
}

// Deadline returns when the lease will count as lost. It is safe for concurrent use.
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

// End is the reason a lease ended.
type End uint8

// The ends of a lease.
const (
	EndLease     End = iota + 1
	EndMax           // Lease.Max has passed
	EndTaken         // the owner does not hold the lock
	EndForgotten     // like EndTaken, after a doubt
	EndClosed        // the loop was closed
)

// Ends returns the earlier of the deadline and Max. It is safe for concurrent use.
func (l *Lease) Ends() time.Time {
	d := l.Deadline().Time()
	if m := l.max.Time(); l.Max > 0 && m.Before(d) {
		return m
	}
	return d
}

// Final returns the end of a fixed lease, or of Max if that is set. Otherwise it returns the zero time.
func (l *Lease) Final() time.Time {
	switch {
	case l.Fixed:
		return l.last.Time()
	case l.Max > 0:
		return l.max.Time()
	}
	return time.Time{}
}

// Hold starts the lease of a lock that was granted to a call sent at the time sent, and reports whether the lease is
// still valid. Margin returns the loss margin of a lease. Call Hold before [Loop.Add].
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

// Began returns the send time of the granted call.
func (l *Lease) Began() time.Time { return l.began }

// Failure returns the last renewal's error. It is safe for concurrent use.
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

func (l *Lease) confirmed() bool { return !l.Fixed || l.counts() < l.TTL }

// renewed moves the deadline after a successful renewal that was sent at the time sent. It does not move a deadline
// that has passed, because a caller may have noticed that.
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

// hasten makes the lease due, unless a call sent after the time doubted has confirmed it. The caller must hold the
// loop's mu and restore the heap.
func (l *Lease) hasten(doubted time.Time) {
	if !l.renewable() || !l.sent.Before(doubted) || !l.next.After(doubted) {
		return
	}
	if l.retry == 0 {
		l.due = l.next
	}
	l.next = doubted
}

// following returns when a lease is next due, given that a renewal was sent at the time sent. A hastened lease keeps
// its original schedule, so that leases do not all become due together.
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
