package exporter

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// Group is what was found of the locks of one group.
type Group struct {
	// Name is the group's.
	Name string
	// Held is how many locks of each kind are held.
	Held map[listing.Kind]int64
	// WithoutTTL is how many are held without a lease, Stuck how many are free while owners
	// are queued, Mixed how many are waited for as for another kind of lock than they are.
	WithoutTTL, Stuck, Mixed int64
	// Queued is how many owners are queued, Longest how many in the longest queue.
	Queued, Longest int64
	// Dead is how many of them had no subscriber at this look and at the one before it.
	Dead int64
	// Waiting is how many connections wait for locks without a queue: one for each process,
	// however many of its threads wait.
	Waiting int64
	// Oldest is how long the oldest hold has been seen, 0 without any.
	Oldest time.Duration
	// Began is how many holds were seen for the first time, since the first look.
	Began int64
}

// Figures are what one look has found.
type Figures struct {
	// At is when the look ended, Took how long it took.
	At   time.Time
	Took time.Duration
	// Groups are in the order of Groups.Names.
	Groups []Group
	// Keys is how many hashes and queues were looked into, Unreadable how many of them the
	// user may not read.
	Keys, Unreadable int64
	// Unchecked is how many owners in queues were not asked about whether they have a
	// subscriber, Untracked how many holds were too many to remember.
	Unchecked, Untracked int64
}

// add takes a lock in, but for its holds and its places.
func (g *Group) add(l *listing.Lock) {
	switch {
	case len(l.Holders) > 0:
		g.Held[l.Kind]++
		if l.TTL == redlatch.NoTTL {
			g.WithoutTTL++
		}
	case l.Queue > 0:
		g.Stuck++
	}
	if l.HasTwoKinds() {
		g.Mixed++
	}
	g.Queued += l.Queue
	g.Longest = max(g.Longest, l.Queue)
	g.Waiting += l.Waiting
}
