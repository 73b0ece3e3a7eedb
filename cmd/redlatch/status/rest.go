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
	// lastShown is how many of the last of a long queue are shown.
	lastShown = 3
)

// more describes the waiters that are not shown.
type more struct {
	Count int `json:"count"`
	// Subscribed and NotSubscribed are how many of them have a subscriber and how many have
	// none; Unknown is how many could not be counted.
	Subscribed    int `json:"subscribed"`
	NotSubscribed int `json:"not_subscribed"`
	Unknown       int `json:"unknown"`
	// Last are the last of the queue, if it is too long to be read.
	Last []waiter `json:"last,omitempty"`
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

// complete reads the rest of the queue, up to inspect.LookedAt places and the last ones, counts the
// listeners of these waiters, and keeps as many as are to be shown, 0 for all. What is not read, or
// cannot be, is marked as unknown, in the second case with the reason.
func (q *question) complete(ctx context.Context, client *redlatch.Client, s *status) error {
	if s.QueueLength == nil {
		return nil
	}
	lock := rfairlock.New(client, s.Name)
	if q.from > 1 {
		return s.turnTo(ctx, lock, q.from, q.show)
	}
	if len(s.Queue) < s.length() {
		if err := s.readRest(ctx, lock); err != nil {
			return err
		}
	}
	last, err := s.readLast(ctx, lock)
	if err != nil {
		return err
	}
	s.show(q.show)
	s.More.end(last)
	return nil
}

// turnTo keeps n places from first on in place of the first ones, 0 for inspect.LookedAt.
func (s *status) turnTo(ctx context.Context, lock *rlock.Lock, first, n int) error {
	if n == 0 {
		n = inspect.LookedAt
	}
	places, err := s.read(ctx, lock, first, n)
	s.Queue, s.More = places, nil
	if rest := s.length() - len(places); rest > 0 {
		s.More = &more{Count: rest, Unknown: rest}
	}
	if err != nil {
		return s.unread(ctx, err)
	}
	return nil
}

// read reads n places from first on, in parts, and counts their listeners. With an error it returns
// what it has read.
func (s *status) read(ctx context.Context, lock *rlock.Lock, first, n int) ([]waiter, error) {
	found, err := readBehind(nil, n, func(from, n int) ([]admin.Waiter, error) {
		in, err := admin.InspectPart(ctx, lock, first-1+from, n)
		if err != nil {
			return nil, err
		}
		s.QueueLength = &in.Waiting
		return in.Queue, nil
	})
	places, now := []waiter{}, time.Now()
	for i := range found {
		places = append(places, waiterOf(&found[i], first+i, now))
	}
	if err != nil {
		return places, err
	}
	for part := range slices.Chunk(places, countAtOnce) {
		if err := s.countPart(ctx, lock, part); err != nil {
			return places, err
		}
	}
	return places, nil
}

// readLast reads the last of a queue that was not read to its end, without those that were read.
func (s *status) readLast(ctx context.Context, lock *rlock.Lock) ([]waiter, error) {
	length := s.QueueLength
	if *length <= max(len(s.Queue), inspect.LookedAt) {
		return nil, nil
	}
	last, err := s.read(ctx, lock, *length-lastShown+1, lastShown)
	s.QueueLength = length // as the numbers add up to
	if err != nil {
		return nil, s.unread(ctx, err)
	}
	return s.behind(last, *length), nil
}

// behind returns the last waiters of a queue of a length without those that were read before:
// places come forward.
func (s *status) behind(last []waiter, length int) []waiter {
	known := make(map[string]bool, len(s.Queue))
	for i := range s.Queue {
		known[s.Queue[i].Owner] = true
	}
	last = slices.DeleteFunc(last, func(w waiter) bool { return known[w.Owner] })
	return last[:min(len(last), length-len(s.Queue))]
}

// end counts the last of the queue among the others, and keeps them.
func (m *more) end(last []waiter) {
	if len(last) == 0 {
		return
	}
	m.Last = last
	m.Unknown -= len(last)
	m.add(last)
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
	rest, err := readBehind(seen, inspect.LookedAt, func(first, n int) ([]admin.Waiter, error) {
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
	s.settle()
	for part := range slices.Chunk(s.Queue[len(seen):], countAtOnce) {
		if err := s.countPart(ctx, lock, part); err != nil {
			return s.unread(ctx, err)
		}
	}
	return nil
}

// settle corrects the length of the queue of the first look: owners have come and left since.
func (s *status) settle() {
	if n := len(s.Queue); n < inspect.LookedAt || n > s.length() {
		s.QueueLength = &n
	}
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

// readBehind reads, in parts, the places behind those that were seen, until so many as limit are
// known. With an error it returns what it has read. A queue only ever moves forward: owners leave
// it, and new ones are appended. So a part that begins with a known owner has skipped none. Owners
// that stay queued are returned exactly once; those that come or go meanwhile may be missing.
func readBehind(seen []string, limit int, read func(first, n int) ([]admin.Waiter, error)) ([]admin.Waiter, error) {
	known := make(map[string]bool, len(seen))
	for _, owner := range seen {
		known[owner] = true
	}
	var behind []admin.Waiter
	next, back := len(seen), overlap
	for {
		from := max(0, next-back)
		part, err := read(from+1, min(partOf, limit))
		if err != nil {
			return behind, err
		}
		if from > 0 && (len(part) == 0 || !known[part[0].Text]) {
			back *= 4 // more have left than parts overlap
			continue
		}
		for _, w := range part {
			if !known[w.Text] && len(known) < limit {
				known[w.Text] = true
				behind = append(behind, w)
			}
		}
		if len(part) < partOf || len(known) == limit {
			return behind, nil
		}
		next, back = from+len(part), overlap
	}
}
