// Package watchdog keeps leases alive and says when one is lost.
//
// One goroutine serves every hold of a client, however many there are. Each
// [Lease] goes round like this:
//
//	            ┌────────── renewed, or failed with time left ─────────┐
//	            ▼                                                      │
//	Add ──▶ watched ──a third of the lease, or a doubt──▶ renewing ────┤
//	            │                                            │         │
//	            │ deadline                          server says "gone" │
//	            ▼                                            ▼         │
//	          lost ◀─────────────── deadline ───────────────lost ◀─────┘
//
// A fixed lease is only watched: nothing renews it, and it ends at its deadline. The
// exception are locks whose time to live the renewals of others may shorten, see
// [Lease.Trust]: there the server is asked to mend that, and the deadline counts from
// its last answer.
//
// The deadline is the send time of the last acknowledged call, plus the lease,
// less the loss margin. Since the server starts to count when it runs the call,
// which is later than when it was sent, the loss is declared before the server
// can grant the lock to another owner. The earlier of the wall clock and the
// monotonic clock decides.
//
// Renewals go out in batches, one script for up to [BatchSize] locks, and are
// retried with a growing pause until the deadline: one failed renewal, or ten,
// costs nothing as long as one succeeds in time.
//
// A doubt is that a connection was lost, or another server has become the master: the
// locks may have been forgotten, as in a failover. Then all leases are renewed at once,
// so that holders learn of it now and not a third of a lease later. That happens once a
// second at most, and each lease goes back to its own time afterwards.
//
// [Loop.Remove] takes a lease out before its lock is released. A renewal that is
// on its way at that moment is harmless on the server, which tests ownership
// first, and its answer is ignored here.
package watchdog

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

// Holder is notified when its lease is over.
type Holder interface {
	// LeaseLost is called once, on the loop's goroutine, when the lease is over
	// or the loop closes. It must not block and may call the loop.
	LeaseLost(end End)
}

// Renewal is a script that renews leases.
type Renewal struct {
	// Fill fills c, a reset call, for n leases. It asks for each once, in order: its key, its
	// owner, and its time to live in milliseconds.
	Fill func(c *transport.Call, n int, lease func(i int) (key, owner, ttl any))
	// Renewed reads the i-th of the n answers: false says that the owner does not hold the lock.
	Renewed func(reply any, i, n int) (bool, error)
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
	// Trust is for how long the server's word that the lease lasts counts, where the renewals
	// of other owners may leave the lock less than the lease; 0: for all of the lease. One
	// that is longer is confirmed every third of it, also a fixed one.
	Trust time.Duration
	// Max ends the lease that long after its grant, however well it is renewed.
	// 0: never.
	Max time.Duration
	// Floor is a moment that renewals must not bring the end of the lock's time
	// to live below, because another hold of the same owner needs it until then.
	Floor *clock.Atomic
	// Least, if not nil, is the longest lease that a hold of the same owner
	// renews, in nanoseconds. Renewals set no shorter one, because that hold
	// counts on it.
	Least *atomic.Int64
	// Renewal is the script that renews the lease. Leases that share one are renewed together.
	Renewal *Renewal
	// Holder learns that the lease is over.
	Holder Holder

	deadline clock.Atomic
	max      clock.Deadline // of Max; set by Hold
	last     clock.Deadline // of a fixed lease, however well it is confirmed; set by Hold

	began time.Time // when the call was sent that was granted; set by Hold

	failure atomic.Pointer[error] // of the last renewal, nil if it succeeded

	// Guarded by Loop.mu.
	older   *Lease // in the order of Loop.Add
	newer   *Lease
	sent    time.Time // when the call was sent that the server confirmed the lease to last
	next    time.Time // when the loop looks at the lease again
	due     time.Time // when it would have been renewed, were it not for a doubt; zero: there was none
	retry   time.Duration
	index   int
	pending bool // a renewal is in flight
	tried   bool // one ever was
	watched bool
}

// Deadline returns the moment at which the lease counts as lost. Safe for
// concurrent use.
func (l *Lease) Deadline() clock.Deadline { return l.deadline.Load() }

// Over returns which end has come at now: 0 none, else that of the lease or that
// of Max. Safe for concurrent use.
func (l *Lease) Over(now time.Time) End {
	switch {
	case l.deadline.Load().Passed(now):
		return EndLease
	case l.Max > 0 && l.max.Passed(now):
		return EndMax
	}
	return 0
}

// End says why a lease is over.
type End uint8

// The ends of a lease. Over returns the first two.
const (
	EndLease     End = iota + 1 // not renewed in time, or a fixed lease is over
	EndMax                      // Lease.Max has passed
	EndTaken                    // the server says that the owner does not hold the lock
	EndForgotten                // the same, after a doubt; see [Loop.Doubted]
	EndClosed                   // the loop was closed
)

// Ends returns the earlier of the deadline and Max. Safe for concurrent use.
func (l *Lease) Ends() time.Time {
	d := l.Deadline().Time()
	if m := l.max.Time(); l.Max > 0 && m.Before(d) {
		return m
	}
	return d
}

// Final returns the moment after which no renewal keeps the lease: the end of a
// fixed one, Max of a renewed one, the zero time when there is none.
func (l *Lease) Final() time.Time {
	switch {
	case l.Fixed:
		return l.last.Time()
	case l.Max > 0:
		return l.max.Time()
	}
	return time.Time{}
}

// Hold sets the first deadline, for a grant whose call was sent at sent, and
// reports whether anything is left of the lease. Margin returns the loss margin of a lease:
// what a confirmation counts for has one of its own. Call it before [Loop.Add].
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

// Began returns when the call was sent that was granted.
func (l *Lease) Began() time.Time { return l.began }

// Failure returns why the last renewal failed, nil if it did not. Safe for concurrent use.
func (l *Lease) Failure() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// counts returns for how long a confirmation counts.
func (l *Lease) counts() time.Duration {
	if l.Trust > 0 {
		return min(l.Trust, l.TTL)
	}
	return l.TTL
}

// confirmed reports whether the server is asked about the lease before it ends.
func (l *Lease) confirmed() bool { return !l.Fixed || l.counts() < l.TTL }

// renewed moves the deadline for a renewal that was sent at sent. A deadline
// that has passed is left: the loss it stands for may have been seen already.
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

// hasten makes the lease due at once, if it was confirmed last to a call that was sent
// before doubted. The loop's mu is held, and the caller mends the schedule.
func (l *Lease) hasten(doubted time.Time) {
	if !l.renewable() || !l.sent.Before(doubted) || !l.next.After(doubted) {
		return
	}
	if l.retry == 0 {
		l.due = l.next
	}
	l.next = doubted
}

// following returns when a lease is due that was renewed by a call sent at sent. One
// that was hastened keeps its time: else all would be due at once from then on.
func (l *Lease) following(sent time.Time) time.Time {
	due, next := l.due, sent.Add(l.counts()/3)
	l.due = time.Time{}
	if due.After(sent) && due.Before(next) {
		return due
	}
	return next
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

func (s *schedule) Push(x any) {
	l, _ := x.(*Lease) // only leases are pushed
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
