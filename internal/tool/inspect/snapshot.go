package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Renewal states of a lease.
const (
	RenewedYes     = "yes"
	RenewedNo      = "no"      // not renewed when due
	RenewedUnknown = "unknown" // not watched long enough
)

const (
	// RenewalLook is how long a lease is watched by default.
	RenewalLook = 40 * time.Second
	// RenewalSlack is how late a renewal may be.
	RenewalSlack = time.Second
	// renewalJitter is the largest insignificant difference between two looks at a lease.
	renewalJitter = 20 * time.Millisecond
)

const (
	// Places is the number of waiters to read in repeated looks.
	Places = 64
	// Interval is the longest pause between looks at a free lock.
	Interval = time.Second
)

// Snapshot is the state of a lock at a moment between Asked and Answered.
type Snapshot struct {
	Name    string
	Kind    Kind
	Mode    string
	Holders []Holder
	// TTL is the remaining lease, redlatch.NoTTL without a lease, or 0 for a free lock.
	TTL     time.Duration
	Queue   []admin.Waiter
	Waiting int
	// QueueError is the reason why the queue was not read.
	QueueError      string
	Asked, Answered time.Time
}

// Read reads a lock and the first places of its queue, or only the lock if the server refuses to
// read the queue. It returns a *NotLock for a hash that is not a lock.
func Read(ctx context.Context, client *redlatch.Client, name string, places int) (*Snapshot, error) {
	s := &Snapshot{Name: name, Asked: time.Now()}
	in, err := admin.InspectPart(ctx, rfairlock.New(client, name), 1, places)
	if queueRefused(err) {
		s.QueueError = unreadQueue(err)
		in, err = admin.Inspect(ctx, rlock.New(client, name))
	}
	s.Answered = time.Now()
	if err != nil {
		return nil, err
	}
	s.TTL, s.Queue, s.Waiting = in.TTL, in.Queue, in.Waiting
	if len(in.Holders) > 0 {
		fields := make([][2]string, len(in.Holders))
		for i, h := range in.Holders {
			fields[i] = [2]string{h.Text, h.CountText}
		}
		shape := ShapeOf(fields, false)
		if shape.Odd != "" {
			return nil, notLockHash(name, shape.Odd)
		}
		s.Kind, s.Mode, s.Holders = shape.Kind, shape.Mode, shape.Holders
	}
	if s.Waiting > 0 && s.Kind != ReadWrite {
		s.Kind = Fair
	}
	return s, nil
}

// queueRefused reports whether the server may have refused only the queue.
func queueRefused(err error) bool {
	var refusal *transport.ServerError
	return errors.As(err, &refusal) && !errors.Is(err, redlatch.ErrWrongType) &&
		(!engine.Passing(err) || transport.IsCode(err, "TRYAGAIN")) // otherwise no key can be read
}

func unreadQueue(err error) string {
	if connect.Denied(err) {
		return "this user may not read it"
	}
	return strings.TrimSuffix(connect.Reason(err)+". "+connect.Remedy(err), ". ")
}

// Held reports whether the lock was held.
func (s *Snapshot) Held() bool { return len(s.Holders) > 0 }

// ReadQueue reports whether the queue was read.
func (s *Snapshot) ReadQueue() bool { return s.QueueError == "" }

// SameHolders reports whether later has the same holders.
func (s *Snapshot) SameHolders(later *Snapshot) bool {
	return slices.EqualFunc(s.Holders, later.Holders, func(a, b Holder) bool { return a.Owner == b.Owner })
}

// Renewal watches the lease of a hold.
type Renewal struct {
	since *Snapshot // the first look, or the last one after a renewal; nil without a lease
	last  *Snapshot
	rose  bool
}

// See records a look. A changed count restarts the watch, because re-entry may have set the lease.
func (r *Renewal) See(now *Snapshot) {
	same := func(a, b Holder) bool { return a.Owner == b.Owner && a.Count == b.Count }
	switch {
	case !now.Held() || now.TTL < 0:
		*r = Renewal{}
	case r.since == nil || !slices.EqualFunc(r.since.Holders, now.Holders, same):
		*r = Renewal{since: now, last: now}
	case Renewed(r.last.TTL, now.TTL, now.Asked.Sub(r.last.Answered)):
		*r = Renewal{since: now, last: now, rose: true}
	default:
		r.last = now
	}
}

// Known returns a renewal state, or "" for a lock without a lease.
func (r *Renewal) Known() string {
	switch {
	case r.since == nil:
		return ""
	case r.last.Answered.Sub(r.since.Answered) >= RenewalDue(r.since.TTL):
		return RenewedNo
	case r.rose:
		return RenewedYes
	}
	return RenewedUnknown
}

// RenewalDue returns how long to watch a lease to see a renewal. Watchdogs renew when two thirds of the lease remain.
func RenewalDue(left time.Duration) time.Duration { return left/3 + RenewalSlack }

// Renewed reports whether a lease was renewed between two looks. between is the minimum time
// between them.
func Renewed(left, later, between time.Duration) bool {
	return later > 0 && later+between > left+renewalJitter
}

// Pause waits for d, or returns ctx's error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Values of Waiter.Subscribed.
const (
	SubscribedYes     = "yes"
	SubscribedNo      = "no"
	SubscribedUnknown = "unknown"
)

// Waiter is a waiter in a fair lock's queue, as commands print it.
type Waiter struct {
	Position int `json:"position"`
	Owned
	// DeadlineMillis is the time until the deadline. Nil means no deadline.
	DeadlineMillis *int64 `json:"deadline_in_ms"`
	Subscribed     string `json:"subscribed"`
	Client
	Label string `json:"label,omitempty"`
}

// WaiterOf returns the waiter as of now.
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

// NotCounted returns a short reason why listeners cannot be counted.
func NotCounted(err error) string {
	var at *redlatch.LockError
	if errors.As(err, &at) {
		err = at.Err
	}
	why := strings.TrimPrefix(err.Error(), admin.ErrNotCounted.Error()+": ")
	return strings.ReplaceAll(sanitize.WithoutPrefix(why), "\n", "; ")
}

const (
	// LookedAt is the maximum number of places in a queue that commands read.
	LookedAt = 10_000
	// placesAtOnce limits the load that one call puts on the server.
	placesAtOnce = 200
	// CountedAtOnce is the number of waiters whose subscribers are counted together.
	CountedAtOnce = 1000
)

// Part is a part of a fair lock's queue, from First to Last, counting from 1.
type Part struct {
	Name        string
	First, Last int
}

// Read returns the waiters and the length of the queue.
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

// Absent returns the owners without a subscriber, limited to among unless it is nil. A live waiter may be without a
// subscriber for a moment, so callers should check again.
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
		counts, err := Listeners(ctx, client, p.Name, part...)
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

// Listeners returns the number of connections subscribed for each of the owners, which wait for a fair lock. To prove
// that counting works, it also subscribes to a channel of its client. It returns admin.ErrNotCounted if no server can
// count subscribers.
func Listeners(ctx context.Context, client *redlatch.Client, name string, owners ...string) (counts []int64, err error) {
	l := hold.Of(rfairlock.New(client, name))
	if err = l.Check(ctx); err == nil {
		kind := l.Kind.(fairqueue.Kind) //nolint:errcheck,forcetypeassert // of a fair lock
		counts, err = fairqueue.Of(l.Engine).Listeners(ctx, kind, owners...)
	}
	if err != nil {
		return nil, &redlatch.LockError{Op: "listeners", Name: l.Name, Err: err}
	}
	return counts, nil
}

// Place is a place in the queue of a fair lock.
type Place struct{ Lock, Owner string }

// Subscribers counts the connections subscribed for each place, on the master and its replicas. The
// count is -1 for a name that cannot be a lock in a cluster. Places in the same queue should be
// adjacent. After an error or the end of ctx, the result is shorter than places.
func Subscribers(ctx context.Context, client *redlatch.Client, cluster bool, places []Place) (counts []int64, err error) {
	for len(places) > 0 && ctx.Err() == nil {
		n := min(len(places), CountedAtOnce)
		next := slices.IndexFunc(places[:n], func(p Place) bool { return p.Lock != places[0].Lock })
		if cluster && next > 0 {
			n = next
		}
		some, err := subscribers(ctx, client, cluster, places[:n])
		if err != nil {
			return counts, err
		}
		counts, places = append(counts, some...), places[n:]
	}
	return counts, nil
}

func subscribers(ctx context.Context, client *redlatch.Client, cluster bool, places []Place) ([]int64, error) {
	owners, channels := make([]string, len(places)), make([]string, len(places))
	for i, p := range places {
		owners[i], channels[i] = p.Owner, protocol.OwnerChannel(p.Lock, p.Owner)
	}
	if cluster {
		counts, err := Listeners(ctx, client, places[0].Lock, owners...)
		if errors.Is(err, redlatch.ErrInvalid) { // its keys would be on several nodes
			return slices.Repeat([]int64{-1}, len(places)), nil
		}
		return counts, err
	}
	e := engine.EngineOf(client)
	if err := e.Enter(); err != nil {
		return nil, err
	}
	defer e.Leave()
	return e.ProvenListeners(ctx, protocol.OwnerChannel(places[0].Lock, e.NextOwner().String()), channels...)
}

// read reads a long queue from its end, because waiters only move forward.
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
