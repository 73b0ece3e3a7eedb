package main

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// What is known of whether a lease is renewed.
const (
	renewedYes     = "yes"     // seen
	renewedNo      = "no"      // not when it was due
	renewedUnknown = "unknown" // not looked at for long enough
)

const (
	// renewalLook is for how long is looked at most, unless the user says.
	renewalLook = 40 * time.Second
	// renewalSlack is how late a renewal may be, and still be on time.
	renewalSlack = time.Second
	// renewalJitter is what two looks may seem apart by chance.
	renewalJitter = 20 * time.Millisecond
)

const (
	// counted is how many of the first in a queue are looked at again and again, and
	// whether they listen.
	counted = 64
	// lookEvery is the most time between two looks at a lock that is free.
	lookEvery = time.Second
)

// renewalDue returns how long a lease with so much left must be looked at to see it
// renewed. Watchdogs renew a lease every third of it, when two thirds are left. So
// what is left now is at least two thirds of it, and at the next renewal no less than
// two thirds of what is left now.
func renewalDue(left time.Duration) time.Duration { return left/3 + renewalSlack }

// sighting is a lock as it was found between two moments.
type sighting struct {
	in              *rlock.Inspection
	asked, answered time.Time
}

// see looks at the lock.
func see(ctx context.Context, client *redlatch.Client, name string) (sighting, error) {
	s := sighting{asked: time.Now()}
	in, err := inspect(ctx, client, name, counted)
	s.in, s.answered = in, time.Now()
	return s, err
}

// readQueue reports whether the queue of a fair lock was read, too: the user may have no
// right to that.
func (s *sighting) readQueue() bool { return s.in.Kind == kindFair }

// roseTo reports whether the time to live was set anew between two sightings: more is
// left than if it had only run down, for the least time that lies between them.
func (s *sighting) roseTo(later *sighting) bool {
	between := later.asked.Sub(s.answered)
	return later.in.TTL >= 0 && later.in.TTL+between > s.in.TTL+renewalJitter
}

// sameHolders reports whether those who held the lock still do.
func (s *sighting) sameHolders(later *sighting) bool {
	return slices.EqualFunc(s.in.Holders, later.in.Holders, func(a, b rlock.Holder) bool { return a.Text == b.Text })
}

// watchRenewal looks whether the lease is renewed, until that is known, the lock has
// changed hands, or limit is over. It returns the last sighting, too.
func watchRenewal(ctx context.Context, client *redlatch.Client, first sighting, limit time.Duration) (string, sighting, error) {
	last := first
	due := renewalDue(first.in.TTL)
	for {
		switch looked := time.Since(first.answered); {
		case last.in.TTL < 0 && looked >= min(limit, renewalSlack):
			return renewedUnknown, last, nil // there is nothing to renew
		case looked >= limit && limit < due:
			return renewedUnknown, last, nil
		case looked >= due:
			return renewedNo, last, nil
		}
		if err := pause(ctx, min(due/10, lookEvery)); err != nil {
			return "", last, err
		}
		next, err := see(ctx, client, first.in.Name)
		if err != nil {
			return "", last, err
		}
		if !first.sameHolders(&next) {
			return renewedUnknown, next, nil
		}
		if last.roseTo(&next) {
			return renewedYes, next, nil
		}
		last = next
	}
}
