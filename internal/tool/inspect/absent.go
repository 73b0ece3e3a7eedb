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
	queue, err := p.read(ctx, client)
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
	lock := rfairlock.New(client, p.Name)
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

// read returns the owners at the places.
func (p Part) read(ctx context.Context, client *redlatch.Client) (queue []string, err error) {
	lock := rfairlock.New(client, p.Name)
	for first := p.First; first <= p.Last; first += placesAtOnce {
		part, err := admin.InspectPart(ctx, lock, first, min(placesAtOnce, p.Last-first+1))
		if err != nil {
			return nil, err
		}
		for i := range part.Queue {
			queue = append(queue, part.Queue[i].Text)
		}
		if len(part.Queue) < placesAtOnce {
			break
		}
	}
	return queue, nil
}
