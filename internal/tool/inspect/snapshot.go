package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// What is known of whether a lease is renewed.
const (
	RenewedYes     = "yes"     // seen
	RenewedNo      = "no"      // not when it was due
	RenewedUnknown = "unknown" // not looked at for long enough
)

const (
	// RenewalLook is for how long is looked at most, unless the user says.
	RenewalLook = 40 * time.Second
	// RenewalSlack is how late a renewal may be, and still be on time.
	RenewalSlack = time.Second
	// renewalJitter is what two looks may seem apart by chance.
	renewalJitter = 20 * time.Millisecond
)

const (
	// Places is how many of the first in a queue are looked at again and again, and
	// whether they listen.
	Places = 64
	// Interval is the most time between two looks at a lock that is free.
	Interval = time.Second
)

// Snapshot is a lock as it was at one moment.
type Snapshot struct {
	// Name is the lock's name.
	Name string
	// Kind is what the lock looks like, "" when it is free and its queue is empty. Mode is what a
	// read/write lock is held for.
	Kind Kind
	Mode string
	// Holders are all holders, none when it is free.
	Holders []Holder
	// TTL is what the lease has left, redlatch.NoTTL when it has none, 0 when the lock is free.
	TTL time.Duration
	// Queue are the first waiters of a fair lock, and Waiting is how many there are.
	Queue   []admin.Waiter
	Waiting int
	// QueueError is why the queue was not read, "" when it was.
	QueueError string
	// The moment was between Asked and Answered.
	Asked, Answered time.Time
}

// Read reads a lock and the first places of its queue. When the server refuses to read the queue, it
// returns the lock alone. The error is a *NotLock for a hash that is no lock. It sends an EVALSHA.
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

// queueRefused reports whether an error is a refusal that may be about the queue of a lock alone.
func queueRefused(err error) bool {
	var refusal *transport.ServerError
	return errors.As(err, &refusal) && !errors.Is(err, redlatch.ErrWrongType) &&
		(!engine.Passing(err) || refusal.HasCode("TRYAGAIN")) // else the server refuses to read any key
}

func unreadQueue(err error) string {
	if connect.Denied(err) {
		return "this user may not read it"
	}
	return strings.TrimSuffix(connect.Reason(err)+". "+connect.Remedy(err), ". ")
}

// Held reports whether the lock was held.
func (s *Snapshot) Held() bool { return len(s.Holders) > 0 }

// ReadQueue reports whether the queue was read, too: the user may have no
// right to that.
func (s *Snapshot) ReadQueue() bool { return s.QueueError == "" }

// SameHolders reports whether the lock still has the same holders.
func (s *Snapshot) SameHolders(later *Snapshot) bool {
	return slices.EqualFunc(s.Holders, later.Holders, func(a, b Holder) bool { return a.Owner == b.Owner })
}

// Renewal is what was seen of the lease of one hold, for as long as it is watched.
type Renewal struct {
	since *Snapshot // the first look at the hold, or the last that found it renewed; nil: there is no lease
	last  *Snapshot
	rose  bool
}

// See takes a look in. A holder that has entered again, or left once, may have set the lease by
// that: it is watched from then on.
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

// Known says what is known of whether the lease is renewed, "" when there is none. A lease that
// was renewed, but no longer when that was due, is not.
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

// RenewalDue returns how long a lease with so much left must be looked at to see it
// renewed. Watchdogs renew a lease every third of it, when two thirds are left. So
// what is left now is at least two thirds of it, and at the next renewal no less than
// two thirds of what is left now.
func RenewalDue(left time.Duration) time.Duration { return left/3 + RenewalSlack }

// Renewed reports whether a lease of which left was left was set anew, if later is left now and at
// least between lies between the two looks. An expired lease has 0 left.
func Renewed(left, later, between time.Duration) bool {
	return later > 0 && later+between > left+renewalJitter
}

// Pause waits for d, or until ctx ends, and returns the error of that.
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

// Place is a place in the queue of a fair lock.
type Place struct{ Lock, Owner string }

// Subscribers counts the connections that are subscribed for each of places, on the master and its
// replicas: a waiter without one is dead, or reconnects. The count is -1 for a name that cannot be a
// lock's in a cluster. Places of one lock should follow each other. The result is shorter than places
// if ctx ended between two calls; otherwise an error means that nothing is known of the other places.
func Subscribers(ctx context.Context, client *redlatch.Client, cluster bool, places []Place) (counts []int64, err error) {
	for len(places) > 0 && ctx.Err() == nil {
		n := min(len(places), CountedAtOnce)
		next := slices.IndexFunc(places[:n], func(p Place) bool { return p.Lock != places[0].Lock })
		if cluster && next > 0 { // each lock has nodes of its own
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
		owners[i], channels[i] = p.Owner, codec.OwnerChannel(p.Lock, p.Owner)
	}
	if cluster {
		counts, err := admin.Listeners(ctx, rfairlock.New(client, places[0].Lock), owners...)
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
	return e.ProvenListeners(ctx, codec.OwnerChannel(places[0].Lock, e.NextOwner().String()), channels...)
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
