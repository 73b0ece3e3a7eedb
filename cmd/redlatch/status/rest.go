package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// partOf is how many places of a long queue are read at once, and overlap how many
	// of them again: so that none is passed over, although places come forward between
	// two parts.
	partOf, overlap = 200, 32
	// countAtOnce is how many waiters' listeners are counted at once.
	countAtOnce = 1000
)

// more describes the waiters that are not shown.
type more struct {
	Count int `json:"count"`
	// Subscribed and NotSubscribed are how many of them have a subscriber and how many have
	// none; Unknown is how many could not be counted.
	Subscribed    int `json:"subscribed"`
	NotSubscribed int `json:"not_subscribed"`
	Unknown       int `json:"unknown"`
}

// String returns the text output.
func (m *more) String() string {
	var said []string
	for _, part := range []struct {
		n    int
		what string
	}{{m.Subscribed, "subscribed"}, {m.NotSubscribed, "not subscribed"}, {m.Unknown, "unknown"}} {
		switch part.n {
		case 0:
		case m.Count:
			return fmt.Sprintf("and %d more, all %s", m.Count, part.what)
		default:
			said = append(said, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("and %d more: %s", m.Count, strings.Join(said, ", "))
}

// complete reads the rest of the queue, counts the listeners of all waiters, and keeps as
// many waiters as are to be shown, 0 for all. What cannot be read is marked as unknown,
// with the reason.
func (s *status) complete(ctx context.Context, client *redlatch.Client, show int) error {
	if s.QueueLength == nil {
		return nil
	}
	if len(s.Queue) < s.length() {
		if err := s.readRest(ctx, rfairlock.New(client, s.Name)); err != nil {
			return err
		}
	}
	s.show(show)
	return nil
}

// show keeps the first n of the queue, all for 0, and counts the others.
func (s *status) show(n int) {
	shown := len(s.Queue)
	if n > 0 {
		shown = min(n, shown)
	}
	s.More = nil
	if rest := s.length() - shown; rest > 0 {
		s.More = &more{Count: rest, Unknown: s.length() - len(s.Queue)}
		s.More.add(s.Queue[shown:])
	}
	s.Queue = s.Queue[:shown]
}

// add counts waiters in.
func (m *more) add(rest []waiter) {
	for i := range rest {
		switch rest[i].Subscribed {
		case inspect.SubscribedYes:
			m.Subscribed++
		case inspect.SubscribedNo:
			m.NotSubscribed++
		default:
			m.Unknown++
		}
	}
}

// length is how many are queued.
func (s *status) length() int {
	if s.QueueLength == nil {
		return 0
	}
	return *s.QueueLength
}

// readRest reads the places behind the first ones, and counts their listeners.
func (s *status) readRest(ctx context.Context, lock *rlock.Lock) error {
	var seen []string
	for i := range s.Queue {
		seen = append(seen, s.Queue[i].Owner)
	}
	rest, err := readBehind(seen, func(first, n int) ([]admin.Waiter, error) {
		in, err := admin.InspectPart(ctx, lock, first, n)
		if err != nil {
			return nil, err
		}
		return in.Queue, nil
	})
	if err != nil {
		return s.unread(ctx, err)
	}
	now := time.Now()
	for i := range rest {
		s.Queue = append(s.Queue, waiterOf(&rest[i], len(s.Queue)+1, now))
	}
	total := len(s.Queue) // owners that have left since the first look are gone
	s.QueueLength = &total
	for part := range slices.Chunk(s.Queue[len(seen):], countAtOnce) {
		if err := s.countPart(ctx, lock, part); err != nil {
			return s.unread(ctx, err)
		}
	}
	return nil
}

// countPart counts the listeners of a part of the queue.
func (s *status) countPart(ctx context.Context, lock *rlock.Lock, part []waiter) error {
	var owners []string
	for i := range part {
		owners = append(owners, part[i].Owner)
	}
	counts, err := admin.Listeners(ctx, lock, owners...)
	if err != nil && !errors.Is(err, admin.ErrNotCounted) {
		return err
	}
	s.record(part, counts, err)
	return nil
}

// unread tells why the rest of the queue is not known, and ends with ctx.
func (s *status) unread(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.Uncounted == "" {
		s.Uncounted = inspect.NotCounted(err)
	}
	return nil
}

// readBehind reads, in parts, the places behind those that were seen. A queue only ever
// moves forward: owners leave it, and new ones are appended. So a part that begins with a
// known owner has skipped none. Owners that stay queued are returned exactly once; those
// that come or go meanwhile may be missing.
func readBehind(seen []string, read func(first, n int) ([]admin.Waiter, error)) ([]admin.Waiter, error) {
	known := make(map[string]bool, len(seen))
	for _, owner := range seen {
		known[owner] = true
	}
	var behind []admin.Waiter
	next, back := len(seen), overlap
	for {
		from := max(0, next-back)
		part, err := read(from+1, partOf)
		if err != nil {
			return nil, err
		}
		if from > 0 && (len(part) == 0 || !known[part[0].Text]) {
			back *= 4 // more have left than parts overlap
			continue
		}
		for _, w := range part {
			if !known[w.Text] {
				known[w.Text] = true
				behind = append(behind, w)
			}
		}
		if len(part) < partOf {
			return behind, nil
		}
		next, back = from+len(part), overlap
	}
}
