package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// What is known of whether a lease is renewed.
const (
	RenewedYes     = "yes"     // seen
	RenewedNo      = "no"      // not when it was due
	RenewedUnknown = "unknown" // not looked at for long enough
)

const (
	// RenewalLook is for how long is looked at most, unless the user says.
	RenewalLook = 40 * time.Second
	// RenewalSlack is how late a renewal may be, and still be on time.
	RenewalSlack = time.Second
	// renewalJitter is what two looks may seem apart by chance.
	renewalJitter = 20 * time.Millisecond
)

const (
	// Places is how many of the first in a queue are looked at again and again, and
	// whether they listen.
	Places = 64
	// Interval is the most time between two looks at a lock that is free.
	Interval = time.Second
)

// RenewalDue returns how long a lease with so much left must be looked at to see it
// renewed. Watchdogs renew a lease every third of it, when two thirds are left. So
// what is left now is at least two thirds of it, and at the next renewal no less than
// two thirds of what is left now.
func RenewalDue(left time.Duration) time.Duration { return left/3 + RenewalSlack }

// Snapshot is a lock as it was found between two moments.
type Snapshot struct {
	// Inspection is what was found.
	Inspection *admin.Inspection
	// Asked and Answered are the two moments.
	Asked, Answered time.Time

	unread error // why the queue was not read, nil when it was
}

// TakeSnapshot looks at the lock.
func TakeSnapshot(ctx context.Context, client *redlatch.Client, name string) (Snapshot, error) {
	s := Snapshot{Asked: time.Now()}
	var err error
	s.Inspection, s.unread, err = lock(ctx, client, name, Places)
	s.Answered = time.Now()
	return s, err
}

// Held reports whether the lock was held.
func (s *Snapshot) Held() bool { return len(s.Inspection.Holders) > 0 }

// ReadQueue reports whether the queue was read, too: the user may have no
// right to that.
func (s *Snapshot) ReadQueue() bool { return s.Inspection.Kind == KindFair }

// RenewedBy reports whether the time to live was set anew between two snapshots: more is
// left than if it had only run down, for the least time that lies between them.
func (s *Snapshot) RenewedBy(later *Snapshot) bool {
	return Renewed(s.Inspection.TTL, later.Inspection.TTL, later.Asked.Sub(s.Answered))
}

// Renewed reports whether a lease of which left was left was set anew, if later is left now and at
// least between lies between the two looks. An expired lease has 0 left.
func Renewed(left, later, between time.Duration) bool {
	return later > 0 && later+between > left+renewalJitter
}

// SameHolders reports whether the lock still has the same holders.
func (s *Snapshot) SameHolders(later *Snapshot) bool {
	return slices.EqualFunc(s.Inspection.Holders, later.Inspection.Holders, func(a, b admin.Holder) bool { return a.Text == b.Text })
}
