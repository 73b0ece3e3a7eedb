package board

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	// lookEvery is the most time between two looks at a lock, and leastBetween the least,
	// however many messages there are.
	lookEvery, leastBetween = time.Second, 250 * time.Millisecond
	// shownEvents is how many events are kept.
	shownEvents = 50
	// absentFor is how long a waiter must be without a subscriber to count as dead: a live one
	// may be so for a moment.
	absentFor = time.Second
)

// What is known of a waiter.
const (
	Alive   = "alive"
	Dead    = "dead"
	Unknown = "unknown"
)

// Lock is one lock as it was at one moment. A look that failed has Err, and else what the look
// before has found.
type Lock struct {
	// Name is the lock's name.
	Name string
	// At is when it was seen, zero before.
	At time.Time
	// Err is why the last look failed: also that the name is no lock's.
	Err error
	// Kind is what it looks like, Mode what a read/write lock is held for.
	Kind listing.Kind
	Mode string
	// Holders are all holders, none when it is free.
	Holders []inspect.Holder
	// Since is when the holders were first seen with it, and Exact whether they were seen to
	// take it: else they may hold it for longer.
	Since time.Time
	Exact bool
	// TTL is what the lease has left, negative when it has none; Lease is the most that was
	// left while these holders had it.
	TTL, Lease time.Duration
	// Renewed is inspect.RenewedYes, RenewedNo or RenewedUnknown; "" without a lease.
	Renewed string
	// Queue are the first waiters, the next one first; Waiting is how many there are.
	// QueueUnread is true when the user may not read the queue.
	Queue       []Waiter
	Waiting     int
	QueueUnread bool
	// Uncounted is why subscribers cannot be counted, "" when they can.
	Uncounted string
	// Number is what there is to tell of a name that holds a number, nil for a lock; Permits are
	// those of a semaphore that are taken, as far as they can be read.
	Number  *listing.Number
	Permits []rsemaphore.Permit
	// Token is the last fencing token, 0 for none.
	Token int64
	// PlainWaiters and ReadWriteWaiters are as in listing.Lock.
	PlainWaiters, ReadWriteWaiters int64
	// Events are the last events, the newest first.
	Events []Event
}

// Waiter is a place in the queue.
type Waiter struct {
	// Position is the place, 1 for the next one.
	Position int
	// Owner is the owner as it stands in Redis.
	Owner string
	inspect.Client
	// Label is that of the owner's client, empty when it has none.
	Label string
	// Deadline is as in admin.Waiter.
	Deadline time.Time
	// State is Alive, Dead or Unknown.
	State string
}

// Event is something that happened to the lock.
type Event struct {
	follow.Event
	// Label is that of the owner's client.
	Label string
}

// Held reports whether it was held.
func (l *Lock) Held() bool { return len(l.Holders) > 0 }

// watcher looks at one lock. It is for one goroutine.
type watcher struct {
	source *Source
	name   string
	conn   redis.Conn // for labels and numbers; nil when there is none

	lock   follow.Lock
	lease  renewal
	last   Lock
	absent map[string]time.Time // since when waiters have no subscriber
	events []Event
}

// watch is the feed of one lock.
func (b *Board) watch(ctx context.Context, name string, publish func(*Lock) bool) {
	w := &watcher{source: b.Source, name: name, lock: follow.Lock{Name: name}, last: Lock{Name: name}}
	defer w.hangUp()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, done := b.Source.listen(ctx, name) // before the first look, so that nothing is missed between
	defer done()
	defer cancel()
	for ctx.Err() == nil {
		began := time.Now()
		w.look(ctx)
		value := w.last
		if ctx.Err() != nil || !publish(&value) {
			return
		}
		took := time.Since(began)
		if inspect.Pause(ctx, max(leastBetween, listing.PauseFactor*took)) != nil {
			return
		}
		w.await(ctx, messages)
	}
}

// await waits for a message or the next look, and takes in the messages that are there.
func (w *watcher) await(ctx context.Context, messages <-chan follow.Message) {
	timer := time.NewTimer(lookEvery - leastBetween)
	defer timer.Stop()
	select {
	case m := <-messages:
		w.receive(&m)
	case <-timer.C:
	case <-ctx.Done():
	}
	for {
		select {
		case m := <-messages:
			w.receive(&m)
		default:
			return
		}
	}
}

// receive takes a message in. That messages may be missed for a while is no message: the looks
// go on.
func (w *watcher) receive(m *follow.Message) {
	if m.Gap == nil && m.Name != "" {
		w.lock.Receive(m)
	}
}

// hangUp closes the connection for details.
func (w *watcher) hangUp() {
	if w.conn != nil {
		_ = w.conn.Close() // only read from
		w.conn = nil
	}
}

// look looks once.
func (w *watcher) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := w.try(ctx); err != nil {
		w.hangUp()
		w.last.Err = err
		var other *inspect.NotLock
		if errors.As(err, &other) {
			w.last = Lock{Name: w.name, Err: err}
		}
	}
}

// try looks once, or returns why it could not.
func (w *watcher) try(ctx context.Context) (err error) {
	if err := limits.Name(w.name); err != nil {
		return err
	}
	if w.conn == nil {
		if w.conn, err = w.source.dial(ctx); err != nil {
			w.conn = nil
			return w.source.problem(err)
		}
	}
	conn := w.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	odd, err := listing.Glance(w.conn, w.name)
	switch {
	case err != nil:
		return w.source.problem(err)
	case odd != "":
		return inspect.NotLockHash(w.name, odd)
	}
	seen, err := inspect.TakeSnapshot(ctx, w.source.client, w.name)
	switch {
	case errors.Is(err, redlatch.ErrWrongType):
		if w.number(ctx) {
			return nil
		}
		return inspect.WrongTypeOn(w.conn, w.name, w.source.problem)
	case err != nil:
		return w.source.problem(err)
	}
	shape := inspect.ShapeOfInspection(seen.Inspection)
	if shape.Odd != "" {
		return inspect.NotLockHash(w.name, shape.Odd)
	}
	now := w.lockOf(&seen, &shape)
	w.count(ctx, now)
	w.details(ctx, now)
	w.happened(seen.Inspection, &shape, now)
	w.last = *now
	return nil
}

// lockOf makes a lock of what was seen.
func (w *watcher) lockOf(seen *inspect.Snapshot, shape *listing.Shape) *Lock {
	in := seen.Inspection
	w.lease.sees(*seen)
	now := &Lock{Name: w.name, At: seen.Answered, Kind: shape.Kind, Mode: shape.Mode, TTL: in.TTL, Renewed: w.lease.known(),
		Waiting: in.Waiting, QueueUnread: !seen.ReadQueue()}
	for _, h := range shape.Holders {
		now.Holders = append(now.Holders, inspect.HolderOf(h, shape.Kind))
	}
	if now.Waiting > 0 && now.Kind != listing.ReadWrite {
		now.Kind = listing.Fair
	}
	for i := range in.Queue {
		q := &in.Queue[i]
		now.Queue = append(now.Queue, Waiter{Position: q.Position, Owner: q.Text, Client: inspect.ClientOf(q.Text), Deadline: q.Deadline, State: Unknown})
	}
	if now.Lease = now.TTL; sameOwners(now.Holders, w.last.Holders) {
		now.Lease = max(now.TTL, w.last.Lease)
	}
	return now
}

// sameOwners reports whether two looks found the same holders.
func sameOwners(a, b []inspect.Holder) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Owner != b[i].Owner {
			return false
		}
	}
	return len(a) > 0
}

// count finds out which waiters are alive. A failure is no failure of the look.
func (w *watcher) count(ctx context.Context, now *Lock) {
	if len(now.Queue) == 0 {
		w.absent = nil
		return
	}
	owners := make([]string, len(now.Queue))
	for i := range now.Queue {
		owners[i] = now.Queue[i].Owner
	}
	counts, err := admin.Listeners(ctx, rfairlock.New(w.source.client, w.name), owners...)
	if err != nil {
		now.Uncounted, w.absent = inspect.NotCounted(err), nil
		return
	}
	absent := map[string]time.Time{}
	for i := range now.Queue {
		q := &now.Queue[i]
		if counts[i] > 0 {
			q.State = Alive
			continue
		}
		first, known := w.absent[q.Owner]
		if !known {
			first = now.At
		}
		if absent[q.Owner] = first; known && now.At.Sub(first) >= absentFor {
			q.State = Dead
		}
	}
	w.absent = absent
}
