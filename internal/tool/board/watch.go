package board

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	lookEvery, leastBetween = time.Second, 250 * time.Millisecond
	lookTime, scanWait      = 10 * time.Second, 4 * time.Second
	shownEvents             = 50
)

// watcher is not safe for concurrent use.
type watcher struct {
	source *Source
	name   string
	locks  *Feed[Locks]
	seen   *seen
	conn   redis.Conn // nil if not connected

	lock   follow.Lock
	lease  inspect.Renewal
	last   Lock
	labels map[string]string
	asked  bool      // another look will show whether a waiter is dead
	inner  bool      // a holder announces a wait inside its hold
	looked time.Time // when the last look of this run succeeded; zero if it failed
}

func (b *Board) watcher(name string) *watcher {
	return &watcher{source: b.source, name: name, locks: b.Locks, seen: &b.seen, lock: follow.Lock{Name: name}, last: Lock{Name: name}}
}

func (w *watcher) watch(ctx context.Context, last *Lock, publish func(*Lock) bool) {
	w.lock, w.looked = follow.Lock{Name: w.name}, time.Time{} // events since the last viewer left were not seen
	if last == nil {
		w.last, w.lease = Lock{Name: w.name}, inspect.Renewal{}
	}
	ctx, cancel := context.WithCancel(ctx)
	messages, done := w.source.listen(ctx, w.name) // must precede the first look, or messages would be missed
	defer done()
	defer cancel()
	defer w.disconnect()
	for look := w.first; ; look = w.look {
		began := time.Now()
		l := look(ctx)
		took := time.Since(began)
		pause := max(leastBetween, pauseAfter(took, l.Err))
		l.expect(pause+lookEvery, took)
		if !publish(l) || inspect.Pause(ctx, pause) != nil {
			return
		}
		w.await(ctx, messages)
	}
}

// first looks for a new viewer. It looks again if a second look reveals more.
func (w *watcher) first(ctx context.Context) *Lock {
	l := w.look(ctx)
	began, circle := time.Now(), l.Held() && (len(l.Queue) > 0 || w.inner)
	if !circle && !w.asked {
		return l
	}
	if circle {
		ctx, cancel := context.WithTimeout(ctx, scanWait)
		_, _, _ = w.locks.Get(ctx)
		cancel()
	}
	if w.asked && inspect.Pause(ctx, absentFor-time.Since(began)) != nil {
		return l
	}
	return w.look(ctx)
}

// await receives messages until the next look.
func (w *watcher) await(ctx context.Context, messages <-chan follow.Message) {
	timer := time.NewTimer(lookEvery - leastBetween)
	defer timer.Stop()
	select {
	case m := <-messages:
		w.receive(&m)
	case <-timer.C:
	case <-ctx.Done():
	}
	for len(messages) > 0 {
		m := <-messages
		w.receive(&m)
	}
}

// receive records a message. It ignores gaps, because the watcher continues to look.
func (w *watcher) receive(m *follow.Message) {
	if m.Gap == nil && m.Name != "" {
		w.lock.Receive(m)
	}
}

func (w *watcher) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

func (w *watcher) look(ctx context.Context) *Lock {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	w.asked = false
	if err := w.try(ctx); err != nil {
		w.looked = time.Time{}
		w.disconnect()
		var other *inspect.NotLock
		if errors.As(err, &other) {
			w.last = Lock{Name: w.name}
		}
		w.last.Err = err
	}
	l := w.last
	if !l.mayBeInCircle() {
		return &l
	}
	if all, _, _ := w.locks.newest(false); all != nil && !all.Old(time.Now()) {
		l.Circles = all.around(&l)
		l.Ahead = all.ahead(&l)
	}
	return &l
}

func (w *watcher) try(ctx context.Context) (err error) {
	if err := limits.Name(w.name); err != nil {
		return err
	}
	if w.conn == nil {
		if w.conn, err = w.source.dial(ctx); err != nil {
			w.conn = nil
			return w.source.Problem(err)
		}
	}
	conn := w.conn
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	seen, err := (*inspect.Snapshot)(nil), inspect.Glance(w.conn, w.name)
	if err == nil {
		seen, err = inspect.Read(ctx, w.source.client, w.name, inspect.Places)
	}
	var other *inspect.NotLock
	switch {
	case errors.As(err, &other):
		return err
	case errors.Is(err, redlatch.ErrWrongType):
		if w.number(ctx) {
			return nil
		}
		return inspect.WrongTypeOn(w.conn, w.name, w.source.Problem)
	case err != nil:
		return w.source.Problem(err)
	}
	now := w.lockOf(seen)
	w.count(ctx, now)
	labels := w.details(ctx, now)
	w.happened(seen, now, labels)
	w.last, w.labels = *now, labels
	return nil
}

func (w *watcher) number(ctx context.Context) bool {
	found, err := inspect.NumberAt(ctx, w.conn, w.name)
	if err != nil || found == nil {
		return false
	}
	w.last = Lock{Name: w.name, Seen: Seen{At: time.Now()}, Kind: found.Kind, TTL: found.TTL, Number: found.Number}
	if found.Number.Taken == 0 {
		return true
	}
	in, err := rsemaphore.NewExpirable(w.source.client, w.name).Inspect(ctx)
	if err != nil {
		return true
	}
	for _, p := range in.Permits {
		h := inspect.Holder{Owner: p.ID, Mode: "permit"}
		if left := p.Left.Milliseconds(); p.Left >= 0 {
			h.LeftMillis = &left
		}
		w.last.Holders = append(w.last.Holders, h)
	}
	return true
}

func (w *watcher) lockOf(seen *inspect.Snapshot) *Lock {
	w.lease.See(seen)
	now := &Lock{Name: w.name, Seen: Seen{At: seen.Answered}, Kind: seen.Kind, Mode: seen.Mode, Holders: slices.Clone(seen.Holders),
		TTL: seen.TTL, Lease: seen.TTL, Renewed: w.lease.Known(), Waiting: seen.Waiting, QueueUnread: seen.QueueError}
	for i := range seen.Queue {
		q := &seen.Queue[i]
		now.Queue = append(now.Queue, Waiter{Position: q.Position, Owner: q.Text, Client: inspect.ClientOf(q.Text), Deadline: q.Deadline, State: Unknown})
	}
	if now.hasHoldersOf(&w.last) {
		now.Lease = max(now.TTL, w.last.Lease)
	}
	return now
}

func (w *watcher) count(ctx context.Context, now *Lock) {
	if len(now.Queue) == 0 {
		return
	}
	owners := make([]string, len(now.Queue))
	for i := range now.Queue {
		owners[i] = now.Queue[i].Owner
	}
	counts, err := inspect.Listeners(ctx, w.source.client, w.name, owners...)
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

func (w *watcher) details(ctx context.Context, now *Lock) map[string]string {
	var owners []string
	for _, h := range now.Holders {
		owners = append(owners, h.Owner)
	}
	for i := range now.Queue {
		owners = append(owners, now.Queue[i].Owner)
	}
	labels, err := inspect.Labels(w.conn, owners)
	if err != nil {
		return nil
	}
	for i := range now.Holders {
		now.Holders[i].Label = labels[now.Holders[i].Owner]
	}
	for i := range now.Queue {
		now.Queue[i].Label = labels[now.Queue[i].Owner]
	}
	w.inner, _ = inspect.Announced(w.conn, now.Holders)
	now.Token, _ = inspect.Token(w.conn, w.name) // 0 if unknown
	now.Kind = now.Kind.WithToken(now.Token)
	if now.Kind == inspect.ReadWrite {
		inspect.ReadLeases(w.conn, w.name, now.Holders)
	}
	counts, err := connect.Listening(ctx, w.conn, codec.LockChannel(w.name), protocol.ReadWriteChannel(w.name))
	if err != nil {
		now.Uncounted = cmp.Or(now.Uncounted, inspect.NotCounted(err))
		return labels
	}
	now.Listening, now.PlainWaiters, now.ReadWriteWaiters = inspect.WaitersOf(now.Kind, now.Held(), now.Waiting > 0, [2]int64(counts))
	return labels
}

func (w *watcher) happened(seen *inspect.Snapshot, now *Lock, labels map[string]string) {
	now.Events = slices.Clone(w.last.Events)
	again := false
	for _, e := range w.lock.Look(seen) {
		again = again || e.What == follow.Passed && e.From == e.Owner
		if !w.told(&e, now) {
			now.Events = append([]Event{{e, cmp.Or(labels[e.Owner], w.labels[e.Owner])}}, now.Events...)
		}
	}
	now.Events = now.Events[:min(len(now.Events), shownEvents)]
	var c changes
	now.Ages, c = w.seen.ages.sees(w.name, &look{
		at: now.At, holders: seen.Holders, shared: now.Kind == inspect.ReadWrite, ttl: now.TTL, token: now.Token, anew: again, last: w.looked,
	})
	now.Age = oldest(now.Ages)
	w.seen.history.changed(hash(w.name), hash(Group(w.name)), now.At, c)
	w.seen.history.watched(w.name, now.At, w.looked, gauges{int32(btoi(now.Held())), int32(now.Waiters())})
	w.looked = now.At
}

// told reports whether the events already include e, an event from the first look.
func (w *watcher) told(e *follow.Event, now *Lock) bool {
	switch {
	case w.last.At.IsZero():
		return false
	case e.What == follow.Held:
		return now.hasHoldersOf(&w.last)
	}
	return e.What == follow.Free && !w.last.Held()
}

// Lock is the state of a lock. Err may also mean that the name is not the name of a lock.
type Lock struct {
	Seen
	Name string
	Kind inspect.Kind
	Mode string // of a read/write lock
	// Holders may also be the permits of a semaphore.
	Holders []inspect.Holder
	Ages    []Age
	Age
	// TTL is negative without a lease. Lease is the largest TTL seen for these holders.
	TTL, Lease time.Duration
	// Renewed is an inspect.Renewed constant, or "" without a lease.
	Renewed     string
	Queue       []Waiter
	Waiting     int
	QueueUnread string
	// Uncounted is the reason why subscribers cannot be counted.
	Uncounted string
	// Listening counts connections that wait for a lock without a queue. It is only a hint, because all waiters of a
	// client share one connection.
	Listening int64
	// Circles are the deadlocks of the lock. If there are none, Ahead lists the locks that the holders are waiting
	// for.
	Circles []inspect.Circle
	Ahead   []inspect.Step
	// Number is nil if the name is a lock.
	Number                         *inspect.Number
	Token                          int64
	PlainWaiters, ReadWriteWaiters int64
	Events                         []Event
}

// Waiter is a waiter in the queue. State is Alive, Dead or Unknown.
type Waiter struct {
	Position int
	Owner    string // as stored in Redis
	inspect.Client
	Label    string
	Deadline time.Time
	State    string
}

// Event is an event with the label of the owner's client.
type Event struct {
	follow.Event
	Label string
}

// Held reports whether the lock was held.
func (l *Lock) Held() bool { return len(l.Holders) > 0 }

// Waiters returns the length of the queue, or the number of waiting connections.
func (l *Lock) Waiters() int {
	if l.Waiting == 0 {
		return int(l.Listening)
	}
	return l.Waiting
}

// Idle reports whether the name is free, without waiters and not a number.
func (l *Lock) Idle() bool { return !l.Held() && l.Waiting == 0 && l.Number == nil }

func (l *Lock) mayBeInCircle() bool {
	return l.Held() && (len(l.Queue) > 0 || l.Listening > 0)
}

func (l *Lock) hasHoldersOf(before *Lock) bool {
	return l.Held() && slices.EqualFunc(l.Holders, before.Holders, func(a, b inspect.Holder) bool { return a.Owner == b.Owner })
}

func (l *Lock) has(s inspect.Step) bool {
	return s.Lock == l.Name &&
		(!s.Queued() || slices.ContainsFunc(l.Queue, func(q Waiter) bool { return bareOwner(q.Owner) == s.Waiter && q.State != Dead })) &&
		slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Owner == s.Holder })
}
