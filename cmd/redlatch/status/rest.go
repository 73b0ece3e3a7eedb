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

// complete reads the part of the queue that is to be shown, or the rest of it up to
// inspect.LookedAt places, counts the listeners of these waiters, and keeps as many as are to be
// shown. What is not read, or cannot be, is marked as unknown, in the second case with the reason.
func (q *question) complete(ctx context.Context, client *redlatch.Client, s *status) error {
	if s.QueueLength == nil {
		return nil
	}
	var err error
	switch {
	case q.from > 1:
		err = s.turnTo(ctx, client, q.from, q.show)
	case len(s.Queue) < s.length():
		err = s.readRest(ctx, client)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && s.Uncounted == "":
		s.Uncounted = inspect.NotCounted(err)
	}
	if q.from == 1 {
		s.show(q.show)
	}
	return nil
}

// turnTo keeps n places from first on in place of the first ones, 0 for inspect.LookedAt.
func (s *status) turnTo(ctx context.Context, client *redlatch.Client, first, n int) error {
	if n == 0 {
		n = inspect.LookedAt
	}
	places, waiting, err := inspect.Part{Name: s.Name, First: first, Last: first + n - 1}.Read(ctx, client)
	s.Queue = []inspect.Waiter{}
	if err == nil {
		s.QueueLength = &waiting
		err = s.add(ctx, client, places, first)
	}
	s.More = nil
	if rest := s.length() - len(s.Queue); rest > 0 {
		s.More = &more{Count: rest, Unknown: rest}
	}
	return err
}

// readRest reads the places behind the first ones.
func (s *status) readRest(ctx context.Context, client *redlatch.Client) error {
	all, _, err := inspect.Part{Name: s.Name, First: 1, Last: inspect.LookedAt}.Read(ctx, client)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(s.Queue))
	for i := range s.Queue {
		known[s.Queue[i].Owner] = true
	}
	rest := slices.DeleteFunc(all, func(w admin.Waiter) bool { return known[w.Text] })
	rest = rest[:min(len(rest), inspect.LookedAt-len(s.Queue))]
	defer s.settle()
	return s.add(ctx, client, rest, len(s.Queue)+1)
}

// add adds waiters, of whom the first has a place, and counts their listeners.
func (s *status) add(ctx context.Context, client *redlatch.Client, waiters []admin.Waiter, place int) error {
	begin, now := len(s.Queue), time.Now()
	for i := range waiters {
		waiters[i].Position = place + i
		s.Queue = append(s.Queue, inspect.WaiterOf(&waiters[i], now))
	}
	for part := range slices.Chunk(s.Queue[begin:], inspect.CountedAtOnce) {
		if err := s.count(ctx, client, part); err != nil {
			return err
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

// show keeps the first n of the queue, all for 0, and counts the others.
func (s *status) show(n int) {
	shown := len(s.Queue)
	if n > 0 {
		shown = min(n, shown)
	}
	s.More = nil
	if rest := s.length() - shown; rest > 0 {
		s.More = &more{Count: rest, Unknown: s.length() - len(s.Queue)}
		for _, w := range s.Queue[shown:] {
			switch w.Subscribed {
			case inspect.SubscribedYes:
				s.More.Subscribed++
			case inspect.SubscribedNo:
				s.More.NotSubscribed++
			default:
				s.More.Unknown++
			}
		}
	}
	s.Queue = s.Queue[:shown]
}

// length is how many are queued.
func (s *status) length() int {
	if s.QueueLength == nil {
		return 0
	}
	return *s.QueueLength
}

// count counts the listeners of a part of the queue.
func (s *status) count(ctx context.Context, client *redlatch.Client, part []inspect.Waiter) error {
	if len(part) == 0 {
		return nil
	}
	owners := make([]string, len(part))
	for i := range part {
		owners[i] = part[i].Owner
	}
	counts, err := admin.Listeners(ctx, rfairlock.New(client, s.Name), owners...)
	if err != nil && !errors.Is(err, admin.ErrNotCounted) {
		return err
	}
	s.record(part, counts, err)
	return nil
}

// record records the numbers of listeners of a part of the queue, or why there are none.
// Without them the inspection counts on the master alone: a listener there is one, but a
// waiter without one may listen on a replica.
func (s *status) record(part []inspect.Waiter, counts []int64, err error) {
	if err != nil {
		s.Uncounted = inspect.NotCounted(err)
	}
	for i := range part {
		q := &part[i]
		switch {
		case i < len(counts) && counts[i] > 0:
			q.Subscribed = inspect.SubscribedYes
		case i < len(counts):
			q.Subscribed = inspect.SubscribedNo
		case q.Subscribed == inspect.SubscribedNo:
			q.Subscribed = inspect.SubscribedUnknown
		}
	}
}
