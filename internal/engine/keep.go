package engine

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/presence"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

const (
	// heartbeat is the time between two heartbeats of a room.
	heartbeat = 5 * time.Second
	// hurried is the least time between two, however good the reasons.
	hurried = 500 * time.Millisecond
	// retried is when a heartbeat that failed is tried again.
	retried = time.Second
)

// Eviction is a dead waiter that was taken out of a queue.
type Eviction struct {
	Name   string // the lock's
	Kind   string // the lock's
	Owner  string
	Absent time.Duration // for how long nobody had listened to its channel
	Native bool          // it was one of a client of this library
	Heard  bool          // somebody had listened before
}

// beginKeeping starts the room's heartbeats, mu held: the first comes after one
// period, so that those who wait for a moment only cost nothing.
func (r *Room) beginKeeping() {
	if r.kept || r.queue == nil {
		return
	}
	r.kept = true
	r.start = time.AfterFunc(heartbeat, func() { r.engine.Go(r.keep) })
}

// endKeeping ends the heartbeats of an empty room, mu held.
func (r *Room) endKeeping() {
	switch {
	case r.first != nil || !r.kept:
	case r.start.Stop():
		r.kept = false
	default:
		signal(r.hurry) // keep finds out
	}
}

// roll returns who is in the room, and one of them that listens to its channel, if
// any does, and whether messages may have been missed since the last time. In an
// empty room it ends the keeping. The one that listens is the last: the first may
// have its turn, and listen no longer, before anybody is counted.
func (r *Room) roll() (waiters []protocol.Waiter, hears string, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiters = make([]protocol.Waiter, 0, len(r.byOwner))
	for s := r.first; s != nil; s = s.next {
		if r.byOwner[s.waiter.Owner] != s {
			continue // its twin stands for both
		}
		waiters = append(waiters, s.waiter)
		if s.hears {
			hears = s.waiter.Owner
		}
	}
	gap, r.gap = r.gap, false
	r.kept = r.first != nil
	return waiters, hears, gap
}

// call makes some of those in the room ask Redis at once.
func (r *Room) call(owners ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, owner := range owners {
		if s := r.byOwner[owner]; s != nil {
			signal(s.Call)
		}
	}
}

// keeping is what goes on while a room is kept. It belongs to one goroutine.
type keeping struct {
	*Room
	who     *presence.Keeper
	ctx     context.Context //nolint:containedctx // ends when the client begins to close
	failing map[string]bool // what was complained of
}

// keep sees to it that those in the room keep their places in the queue on the
// server, that the dead before them are taken out, and that a lock that lies free
// is taken, until the room is empty or the client closes.
func (r *Room) keep() {
	ctx, cancel := r.engine.Open(context.Background())
	defer cancel()
	k := &keeping{
		Room: r, ctx: ctx, failing: map[string]bool{},
		who: presence.New(presence.Config{Grace: r.engine.Grace, Period: heartbeat}),
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		reconnected := r.engine.reconnected()
		next, more := k.round()
		if !more || !k.rest(timer, next, reconnected) {
			return
		}
	}
}

// rest waits for the next round. It returns false when the client closes.
func (k *keeping) rest(timer *time.Timer, next time.Duration, reconnected <-chan struct{}) bool {
	more := k.pause(timer, next, reconnected)
	select {
	case <-reconnected: // whatever else has ended the pause
		k.who.Gap()
	default:
	}
	return more
}

func (k *keeping) pause(timer *time.Timer, next time.Duration, reconnected <-chan struct{}) bool {
	began := time.Now()
	timer.Reset(next)
	select {
	case <-timer.C:
		return true
	case <-k.ctx.Done():
		return false
	case <-reconnected:
	case <-k.hurry:
	}
	if left := hurried - time.Since(began); left > 0 && !k.empty() {
		return k.engine.Sleep(k.ctx, left)
	}
	return true
}

func (r *Room) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first == nil
}

// round is one heartbeat and what follows from it. It returns when the next is due,
// and false when there is nobody left to keep a place for.
func (k *keeping) round() (time.Duration, bool) {
	waiters, hears, gap := k.roll()
	if len(waiters) == 0 {
		return 0, false
	}
	if gap {
		k.who.Gap()
	}
	k.engine.KeepTime(k.ctx)
	beat, err := k.beat(waiters)
	if err != nil {
		return retried, true
	}
	ours := make(map[string]bool, len(waiters))
	for _, w := range waiters {
		ours[w.Owner] = true
	}
	k.call(beat.Missing...) // they queue anew
	if beat.Free() && len(beat.Front) > 0 {
		k.call(beat.Front[0].Owner) // if it is one of ours
	}
	k.who.Look(time.Now(), beat, func(owner string) bool { return ours[owner] }, hears)
	k.count()
	k.evict()
	if owner := k.who.Nudge(time.Now()); owner != "" {
		k.nudge(owner)
	}
	return k.who.Next(time.Now()), true
}

// nudge tells the first in the queue once more that the lock is free.
func (k *keeping) nudge(owner string) {
	answer, err := k.run("nudge", func(c *transport.Call) { k.queue.Nudge(c, owner) })
	if err != nil {
		return
	}
	_, err = reply.Nudged(answer)
	k.complain("nudge", err)
}

// beat keeps the places of those in the room.
func (k *keeping) beat(waiters []protocol.Waiter) (reply.Beat, error) {
	answer, err := k.run("heartbeat", func(c *transport.Call) {
		k.queue.Heartbeat(c, k.who.Window(), waiters, k.who.Others())
	})
	if err != nil {
		return reply.Beat{}, err
	}
	beat, err := reply.DecodeBeat(answer)
	k.complain("heartbeat", err)
	return beat, err
}

// count finds out who is there.
func (k *keeping) count() {
	owners := k.who.Ask()
	if len(owners) == 0 {
		return
	}
	channels := make([]string, len(owners))
	for i, owner := range owners {
		channels[i] = k.queue.WaiterChannel(owner)
	}
	ctx, cancel := context.WithTimeout(k.ctx, k.engine.Command)
	defer cancel()
	counts, err := k.engine.Listeners(ctx, channels...)
	if err != nil {
		counts = nil // some nodes are not all
	}
	k.engine.counting.report(k.engine, err, k.who.Counted(time.Now(), counts))
}

// evict takes the dead out that are in the way.
func (k *keeping) evict() {
	for dead := range slices.Chunk(k.who.Evict(), together) {
		if k.evictSome(dead) < len(dead) {
			return // the queue is another by now
		}
	}
}

// evictSome returns how many were taken out.
func (k *keeping) evictSome(dead []presence.Death) int {
	places := make([]reply.Place, len(dead))
	for i, d := range dead {
		places[i] = d.Place
	}
	answer, err := k.run("eviction", func(c *transport.Call) { k.queue.Evict(c, places) })
	if err != nil {
		return 0
	}
	evicted, err := reply.DecodeEvicted(answer)
	k.complain("eviction", err)
	n := min(len(evicted), len(dead))
	for _, d := range dead[:n] {
		k.evicted(d)
	}
	return n
}

// evicted tells of one that was taken out.
func (k *keeping) evicted(d presence.Death) {
	k.engine.Logger.Warn("redlatch: a dead waiter was taken out of the queue: nobody listens to its channel",
		"lock", k.name, "owner", codec.Quote(d.Owner), "absent", d.Absent, "redlatch", d.Native, "heard_before", d.Heard)
	if tell := k.engine.Hooks.Evicted; tell != nil {
		tell(Eviction{Name: k.name, Kind: k.id.kind, Owner: d.Owner, Absent: d.Absent, Native: d.Native, Heard: d.Heard})
	}
}

// run sends one of the scripts. They may run twice without harm, and the next
// heartbeat shows what became of one whose outcome is not known. Errors are logged;
// what a reply says is for the caller to judge.
func (k *keeping) run(what string, fill func(*transport.Call)) (any, error) {
	at := k.engine.Attempt()
	fill(&at.Call)
	reply, err := at.Run(k.ctx, nil)
	if err != nil && !retryable(err) {
		k.complain(what, err) // connections that are lost are logged elsewhere
	}
	return reply, err
}

// complain logs an error, once until it works again.
func (k *keeping) complain(what string, err error) {
	if err != nil && !k.failing[what] {
		k.engine.Logger.Warn("redlatch: a queue cannot be looked after: its waiters may lose their places, or wait for the dead",
			"lock", k.name, "step", what, "error", err)
	}
	k.failing[what] = err != nil
}

// LossTeller is implemented by transports that tell when a connection was lost, and not
// only when another one was made in its place.
type LossTeller interface {
	// Lost returns a channel that is closed with the next loss.
	Lost() <-chan struct{}
}

// doubted returns a channel that is closed when the server may have forgotten locks: a
// connection was lost, or another server is the master. Of a transport that tells only
// when a connection was replaced it is that, nil of one that tells nothing.
func (e *Engine) doubted() <-chan struct{} {
	if t, ok := e.Transport.(LossTeller); ok {
		return t.Lost()
	}
	return e.reconnected()
}

// reconnected returns a channel that is closed when a command connection was made
// in place of a lost one, nil where the transport does not tell.
func (e *Engine) reconnected() <-chan struct{} {
	if r, ok := e.Transport.(transport.Reconnecter); ok {
		return r.Reconnected()
	}
	return nil
}
