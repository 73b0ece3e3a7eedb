package inspect

import (
	"context"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// LookedAt is how many places of a queue commands look at: what they read and show is bounded,
	// however many wait.
	LookedAt = 10_000
	// placesAtOnce is how many places of a queue are read at once: what a look costs the
	// server must not grow with the queue.
	placesAtOnce = 200
	// countedAtOnce is how many waiters' subscribers are counted at once.
	countedAtOnce = 1000
)

// Part is a part of the queue of a fair lock.
type Part struct {
	// Name is the lock's.
	Name string
	// First and Last are the first place and the last: 1 is the next one.
	First, Last int
}

// Absent returns the owners at the places for which no connection is subscribed, the next one
// first: of all, or of those in among, if it is not nil. A live waiter may be one of them for a
// moment, after it was queued and while it reconnects: callers that act on it look again. Owners
// that leave the queue meanwhile may be missing.
func (p Part) Absent(ctx context.Context, client *redlatch.Client, among []string) ([]string, error) {
	lock := rfairlock.New(client, p.Name)
	queue, err := p.read(func(first, n int) ([]string, int, error) {
		part, err := admin.InspectPart(ctx, lock, first, n)
		if err != nil {
			return nil, 0, err
		}
		owners := make([]string, len(part.Queue))
		for i := range part.Queue {
			owners[i] = part.Queue[i].Text
		}
		return owners, part.Waiting, nil
	})
	if err != nil {
		return nil, err
	}
	if among != nil {
		asked := make(map[string]bool, len(among))
		for _, owner := range among {
			asked[owner] = true
		}
		queue = slices.DeleteFunc(queue, func(owner string) bool { return !asked[owner] })
	}
	var absent []string
	for owners := range slices.Chunk(queue, countedAtOnce) {
		counts, err := admin.Listeners(ctx, lock, owners...)
		if err != nil {
			return nil, err
		}
		for i, owner := range owners {
			if counts[i] == 0 {
				absent = append(absent, owner)
			}
		}
	}
	return absent, nil
}

// read returns the owners at the places, read with read, which also returns how many are queued. It
// reads a long queue from the end: places only come forward, so owners that stay are not passed over.
func (p Part) read(read func(first, n int) (owners []string, waiting int, err error)) ([]string, error) {
	front, waiting, err := read(p.First, min(placesAtOnce, p.Last-p.First+1))
	last := min(p.Last, waiting)
	if err != nil || last < p.First+placesAtOnce {
		return front, err
	}
	var parts [][]string
	known := map[string]bool{}
	for ; last >= p.First; last -= placesAtOnce {
		first := max(p.First, last-placesAtOnce+1)
		part, _, err := read(first, last-first+1)
		if err != nil {
			return nil, err
		}
		part = slices.DeleteFunc(part, func(owner string) bool { return known[owner] })
		for _, owner := range part {
			known[owner] = true
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}
