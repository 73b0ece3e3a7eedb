package inspect

import (
	"context"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// placesAtOnce is how many places of a queue are read at once: what a look costs the
	// server must not grow with the queue.
	placesAtOnce = 200
	// countedAtOnce is how many waiters' subscribers are counted at once.
	countedAtOnce = 1000
)

// Absent returns the owners in the queue of a fair lock for which no connection is subscribed,
// the next one first: of all that are queued, or of those in among, if it is not nil. A live
// waiter may be among them for a moment, after it was queued and while it reconnects: who acts
// on it looks again. Owners that leave the queue meanwhile may be missing.
func Absent(ctx context.Context, client *redlatch.Client, name string, among []string) ([]string, error) {
	lock := rfairlock.New(client, name)
	var queue []string
	for {
		part, err := admin.InspectPart(ctx, lock, len(queue)+1, placesAtOnce)
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
