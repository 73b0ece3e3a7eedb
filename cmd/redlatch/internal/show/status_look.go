package show

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	whyAbsent     = "no_subscriber"
	whySubscribed = "subscribed"
	whyUnknown    = "unknown"
	whyOverdue    = "overdue"
)

type why struct {
	Reason string `json:"reason"`
	inspect.Owned
	inspect.Client
	// FirstMillis is how long the owner was seen as the first waiter while the lock was free.
	FirstMillis int64 `json:"first_for_ms"`
	// AbsentMillis is nil if the first waiter has a subscriber, or if this is unknown.
	AbsentMillis *int64 `json:"no_subscriber_for_ms"`
}

func (q *question) watch(ctx context.Context, client *redlatch.Client) (*status, error) {
	var head absence
	var lease inspect.Renewal
	var first time.Time
	for {
		s, answered, err := q.once(ctx, client, &lease)
		if err != nil {
			return nil, err
		}
		waits := !s.Held && len(s.Queue) > 0
		if waits {
			head.observe(&s.Queue[0], answered, time.Now())
		}
		if !waits && (!q.lease || s.Renewed != inspect.RenewedUnknown) {
			return s, q.complete(ctx, client, s)
		}
		if first.IsZero() {
			first = time.Now()
		}
		left := q.look - answered.Sub(first)
		if left <= 0 {
			if waits {
				s.explain(&head, answered)
			}
			return s, q.complete(ctx, client, s)
		}
		if err := inspect.Pause(ctx, min(left, q.look/4, inspect.Interval)); err != nil {
			return nil, err
		}
	}
}

func (q *question) once(ctx context.Context, client *redlatch.Client, lease *inspect.Renewal) (*status, time.Time, error) {
	seen, err := inspect.Read(ctx, client, q.name, inspect.Places)
	if err != nil {
		return nil, time.Time{}, err
	}
	s := statusOf(seen)
	lease.See(seen)
	s.Renewed = lease.Known()
	return s, seen.Answered, s.count(ctx, client, s.Queue)
}

type absence struct {
	owner  string
	since  time.Time // first in the queue since then
	absent time.Time // without a listener since then; zero if it has one or if unknown
}

func (v *absence) observe(first *inspect.Waiter, asked, answered time.Time) {
	if v.owner != first.Owner || v.since.IsZero() {
		*v = absence{owner: first.Owner, since: asked}
	}
	switch {
	case first.Subscribed != inspect.SubscribedNo:
		v.absent = time.Time{}
	case v.absent.IsZero():
		v.absent = answered
	}
}

func (s *status) explain(head *absence, now time.Time) {
	first := &s.Queue[0]
	w := &why{Owned: first.Owned, Client: first.Client, FirstMillis: now.Sub(head.since).Milliseconds()}
	if !head.absent.IsZero() {
		ms := max(0, now.Sub(head.absent).Milliseconds())
		w.AbsentMillis = &ms
	}
	switch {
	case first.DeadlineMillis != nil && *first.DeadlineMillis <= 0:
		w.Reason = whyOverdue
	case w.AbsentMillis != nil:
		w.Reason = whyAbsent
	case first.Subscribed == inspect.SubscribedYes:
		w.Reason = whySubscribed
	default:
		w.Reason = whyUnknown
	}
	s.Why, s.Note = w, s.explanation(w)
}

func (s *status) explanation(w *why) string {
	who := "the first in the queue, " + sanitize.Word(w.Owner)
	if w.Kind != "unknown" {
		who += " (" + w.Name() + "),"
	} else {
		who += ","
	}
	switch w.Reason {
	case whyOverdue:
		return fmt.Sprintf("%s is past its deadline by this machine's clock: the next request for the lock removes it, but none came for %s",
			who, cli.Millis(w.FirstMillis))
	case whySubscribed:
		return fmt.Sprintf("%s is subscribed, but has not acquired the lock for %s: it will when notified, or at its next poll; "+
			"if that takes longer than 10s, its process is probably stopped or hangs: use `redlatch evict --even-if-alive %s`",
			who, cli.Millis(w.FirstMillis), inspect.Args(s.Name, w.Owner))
	case whyUnknown:
		return fmt.Sprintf("%s has not acquired the lock for %s, and may be dead: %s",
			who, cli.Millis(w.FirstMillis), s.Uncounted)
	}
	said := fmt.Sprintf("%s has had no subscriber for %s", who, cli.Millis(*w.AbsentMillis))
	if first := s.Queue[0].DeadlineMillis; first != nil {
		said += ": if it is dead, it blocks the lock for " + cli.Millis(*first) + " more"
	} else {
		said += ", and no deadline: if it is dead, it blocks the lock forever"
	}
	return said + s.evictAdvice()
}

func (s *status) evictAdvice() string {
	absent := 0
	for i := range s.Queue {
		switch q := &s.Queue[i]; {
		case q.Kind == "redlatch" && q.Subscribed == inspect.SubscribedYes:
			return fmt.Sprintf(", unless a waiting Redlatch client, as at place %d, evicts it", q.Position)
		case q.Subscribed == inspect.SubscribedNo:
			absent++
		}
	}
	use := "use `redlatch evict " + inspect.Args(s.Name, s.Queue[0].Owner) + "`"
	if absent > 1 {
		use = fmt.Sprintf("use `redlatch evict --all-dead %s`; %d have no subscriber", inspect.Args(s.Name), absent)
	}
	if s.length() > len(s.Queue) {
		return fmt.Sprintf("; none of the first %d is a Redlatch client, which would evict it: %s", len(s.Queue), use)
	}
	return "; no Redlatch client, which would evict it, is waiting: " + use
}

type more struct {
	Count         int `json:"count"`
	Subscribed    int `json:"subscribed"`
	NotSubscribed int `json:"not_subscribed"`
	Unknown       int `json:"unknown"`
}

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

// complete reads the waiters to be printed and counts their listeners.
func (q *question) complete(ctx context.Context, client *redlatch.Client, s *status) error {
	if s.QueueLength == nil {
		return nil
	}
	if q.from > 1 || len(s.Queue) < s.length() {
		err := s.read(ctx, client, q.from, q.show)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && s.Uncounted == "":
			s.Uncounted = inspect.NotCounted(err)
		}
	}
	s.show(q.show)
	return nil
}

// read reads n places starting at first, or inspect.LookedAt places if n is 0. If it fails, the queue is unchanged or
// empty.
func (s *status) read(ctx context.Context, client *redlatch.Client, first, n int) error {
	if n == 0 || first == 1 {
		n = inspect.LookedAt
	}
	if first > 1 {
		s.Queue = []inspect.Waiter{}
	}
	waiters, waiting, err := inspect.Part{Name: s.Name, First: first, Last: first + n - 1}.Read(ctx, client)
	if err != nil {
		return err
	}
	if first == 1 && len(waiters) < n { // the queue changed while its parts were read
		waiting = len(waiters)
	}
	s.Queue, s.QueueLength = make([]inspect.Waiter, len(waiters)), &waiting
	for i := range waiters {
		waiters[i].Position = first + i
		s.Queue[i] = inspect.WaiterOf(&waiters[i], time.Now())
	}
	for part := range slices.Chunk(s.Queue, inspect.CountedAtOnce) {
		if err := s.count(ctx, client, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *status) show(n int) {
	shown := len(s.Queue)
	if n > 0 {
		shown = min(n, shown)
	}
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

func (s *status) length() int {
	if s.QueueLength == nil {
		return 0
	}
	return *s.QueueLength
}

func (s *status) count(ctx context.Context, client *redlatch.Client, part []inspect.Waiter) error {
	if len(part) == 0 {
		return nil
	}
	owners := make([]string, len(part))
	for i := range part {
		owners[i] = part[i].Owner
	}
	counts, err := inspect.Listeners(ctx, client, s.Name, owners...)
	if err != nil && !errors.Is(err, admin.ErrNotCounted) {
		return err
	}
	s.record(part, counts, err)
	return nil
}

// record corrects the states of the waiters in part, because the inspection missed subscribers on replicas.
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
