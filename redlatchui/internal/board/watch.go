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
)

// watcher looks at one lock. It is for one goroutine.
type watcher struct {
	source *Source
	name   string
	conn   redis.Conn // for labels and numbers; nil when there is none

	lock   follow.Lock
	lease  renewal
	last   Lock
	events []Event

	seen  *seen
	locks *View[Locks] // of a lock that may be in a circle of waits, nil else
	first bool         // nothing was seen since viewers came
	asked bool         // whether the first waiter is dead will be known from the next count
}

// watch is the feed of one lock.
func (b *Board) watch(ctx context.Context, name string, publish func(*Lock) bool) {
	w := b.take(name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, done := b.Source.listen(ctx, name) // before the first look, so that nothing is missed between
	defer done()
	defer cancel()
	defer b.keep(w)
	for ctx.Err() == nil {
		began := time.Now()
		w.look(ctx)
		if w.first {
			w.settle(ctx, b)
		}
		w.waits(b)
		took := time.Since(began)
		pause := max(leastBetween, pauseAfter(took, w.last.Err))
		w.last.Next = time.Now().Add(pause + lookEvery + 2*took + overdue)
		value := w.last
		if ctx.Err() != nil || !publish(&value) {
			return
		}
		if inspect.Pause(ctx, pause) != nil {
			return
		}
		w.await(ctx, messages)
	}
}

// settle looks again before viewers see the first look, where that will tell more: which waiters
// are dead is known from two counts, and circles of waits from scans.
func (w *watcher) settle(ctx context.Context, b *Board) {
	w.first = false
	w.waits(b)
	if w.locks == nil && !w.asked {
		return
	}
	began := time.Now()
	if w.locks != nil {
		ctx, cancel := context.WithTimeout(ctx, scanWait)
		w.locks.Get(ctx)
		cancel()
	}
	if w.asked && inspect.Pause(ctx, absentFor-time.Since(began)) != nil {
		return
	}
	w.look(ctx)
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

// hangUp closes the connection for details, and what it has open of the board.
func (w *watcher) hangUp() {
	w.disconnect()
	if w.locks != nil {
		w.locks.Close()
		w.locks = nil
	}
}

// disconnect closes the connection for details.
func (w *watcher) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close() // only read from
		w.conn = nil
	}
}

// look looks once.
func (w *watcher) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.asked = false
	if err := w.try(ctx); err != nil {
		w.disconnect()
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
		Waiting: in.Waiting, QueueUnread: seen.QueueUnread()}
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
		return
	}
	owners := make([]string, len(now.Queue))
	for i := range now.Queue {
		owners[i] = now.Queue[i].Owner
	}
	counts, err := admin.Listeners(ctx, rfairlock.New(w.source.client, w.name), owners...)
	if err != nil {
		now.Uncounted = inspect.NotCounted(err)
		return
	}
	for i := range now.Queue {
		q := &now.Queue[i]
		q.State = w.seen.presence.sees(w.name, q.Owner, counts[i], now.At)
		w.asked = w.asked || q.State == Unknown
	}
}
