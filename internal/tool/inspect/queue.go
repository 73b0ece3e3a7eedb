package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
)

// What the output says about the subscription of a waiter.
const (
	SubscribedYes     = "yes"
	SubscribedNo      = "no"
	SubscribedUnknown = "unknown"
)

// Waiter is a place in the queue of a fair lock, as commands print it.
type Waiter struct {
	// Position is the place, 1 for the next one.
	Position int `json:"position"`
	Owned
	// DeadlineMillis is the time to the deadline, negative when that is over, nil
	// when there is none.
	DeadlineMillis *int64 `json:"deadline_in_ms"`
	// Subscribed is whether a connection is subscribed to its channel, one of the constants.
	Subscribed string `json:"subscribed"`
	Client
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// WaiterOf returns a waiter as it is at a time.
func WaiterOf(q *admin.Waiter, now time.Time) Waiter {
	w := Waiter{Position: q.Position, Owned: OwnedBy(q.Text), Subscribed: SubscribedUnknown, Client: ClientOf(q.Text)}
	switch {
	case !q.Counted:
	case q.Subscribed:
		w.Subscribed = SubscribedYes
	default:
		w.Subscribed = SubscribedNo
	}
	if !q.Deadline.IsZero() {
		left := q.Deadline.Sub(now).Milliseconds()
		w.DeadlineMillis = &left
	}
	return w
}

// NotCounted returns why listeners cannot be counted, in few words.
func NotCounted(err error) string {
	var at *redlatch.LockError
	if errors.As(err, &at) {
		err = at.Err
	}
	why := strings.TrimPrefix(err.Error(), admin.ErrNotCounted.Error()+": ")
	return strings.ReplaceAll(sanitize.WithoutPrefix(why), "\n", "; ")
}

const (
	// LookedAt is how many places of a queue commands look at: what they read and show is bounded,
	// however many wait.
	LookedAt = 10_000
	// placesAtOnce is how many places of a queue are read at once: what a look costs the
	// server must not grow with the queue.
	placesAtOnce = 200
	// CountedAtOnce is how many waiters' subscribers are counted at once.
	CountedAtOnce = 1000
)

// Part is a part of the queue of a fair lock.
type Part struct {
	// Name is the lock's.
	Name string
	// First and Last are the first place and the last: 1 is the next one.
	First, Last int
}

// Read returns the waiters at the places, the next one first, and how many are queued. Owners that
// stay queued are returned once; those that come or go meanwhile may be missing.
func (p Part) Read(ctx context.Context, client *redlatch.Client) ([]admin.Waiter, int, error) {
	lock := rfairlock.New(client, p.Name)
	return p.read(func(first, n int) ([]admin.Waiter, int, error) {
		part, err := admin.InspectPart(ctx, lock, first, n)
		if err != nil {
			return nil, 0, err
		}
		return part.Queue, part.Waiting, nil
	})
}

// Absent returns the owners at the places for which no connection is subscribed, the next one
// first: of all, or of those in among, if it is not nil. A live waiter may be one of them for a
// moment, after it was queued and while it reconnects: callers that act on it look again. Owners
// that leave the queue meanwhile may be missing.
func (p Part) Absent(ctx context.Context, client *redlatch.Client, among []string) ([]string, error) {
	queue, _, err := p.Read(ctx, client)
	if err != nil {
		return nil, err
	}
	asked := make(map[string]bool, len(among))
	for _, owner := range among {
		asked[owner] = true
	}
	var owners, absent []string
	for i := range queue {
		if among == nil || asked[queue[i].Text] {
			owners = append(owners, queue[i].Text)
		}
	}
	for part := range slices.Chunk(owners, CountedAtOnce) {
		counts, err := admin.Listeners(ctx, rfairlock.New(client, p.Name), part...)
		if err != nil {
			return nil, err
		}
		for i, owner := range part {
			if counts[i] == 0 {
				absent = append(absent, owner)
			}
		}
	}
	return absent, nil
}

// read returns the waiters at the places, read with read, and how many are queued. It reads a long
// queue from the end: places only come forward, so owners that stay are not passed over.
func (p Part) read(read func(first, n int) (part []admin.Waiter, waiting int, err error)) ([]admin.Waiter, int, error) {
	front, waiting, err := read(p.First, min(placesAtOnce, p.Last-p.First+1))
	last := min(p.Last, waiting)
	if err != nil || last < p.First+placesAtOnce {
		return front, waiting, err
	}
	var parts [][]admin.Waiter
	known := map[string]bool{}
	for ; last >= p.First; last -= placesAtOnce {
		first := max(p.First, last-placesAtOnce+1)
		part, _, err := read(first, last-first+1)
		if err != nil {
			return nil, waiting, err
		}
		part = slices.DeleteFunc(part, func(w admin.Waiter) bool { return known[w.Text] })
		for i := range part {
			known[part[i].Text] = true
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), waiting, nil
}
