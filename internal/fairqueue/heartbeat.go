package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

const (
	// period is the time between two heartbeats of a group.
	period = 5 * time.Second
	// hurried is the least time between two, however good the reasons.
	hurried = 500 * time.Millisecond
	// retried is when a heartbeat that failed is tried again.
	retried = time.Second
	// idle is the pause between two attempts from which on a free lock counts as one that its
	// next owner does not come for: about a second after it was first seen to be free.
	idle = time.Second / 2
)

// beginHeartbeats starts the group's heartbeats, mu held: the first comes after one period, so
// that a short wait costs nothing, or sooner: see [Place.Idle].
func (g *Group) beginHeartbeats() {
	if g.beating {
		return
	}
	g.beating = true
	g.start = time.AfterFunc(period, func() { g.engine.Go(g.heartbeats) })
}

// Idle says that the lock has been free for about a second and that the waiter that is to take
// it, of another process, has not come. It may be dead: heartbeats that have not begun do.
func (p *Place) Idle() {
	g := p.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.beating && g.start.Stop() {
		g.start.Reset(0)
	}
}

// endHeartbeats ends the heartbeats of an empty group, mu held.
func (g *Group) endHeartbeats() {
	switch {
	case g.first != nil || !g.beating:
	case g.start.Stop():
		g.beating = false
	default:
		acquire.Signal(g.hurry) // the goroutine finds out
	}
}

// waiting returns the waiters of the group, one of them that listens to its channel, if any
// does, and whether messages may have been missed since the last time. In an empty group it
// ends the heartbeats. The one that listens is the last: the first may have its turn, and
// listen no longer, before the listeners are counted.
func (g *Group) waiting() (waiters []Waiter, subscribed string, gap bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiters = make([]Waiter, 0, len(g.byOwner))
	for p := g.first; p != nil; p = p.next {
		if g.byOwner[p.waiter.Owner] != p {
			continue // its twin stands for both
		}
		waiters = append(waiters, p.waiter)
		if p.subscribed {
			subscribed = p.waiter.Owner
		}
	}
	gap, g.gap = g.gap, false
	g.beating = g.first != nil
	return waiters, subscribed, gap
}

// call makes some of the group ask Redis at once.
func (g *Group) call(owners ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, owner := range owners {
		if p := g.byOwner[owner]; p != nil {
			p.call()
		}
	}
}

func (g *Group) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first == nil
}

// heartbeater is what goes on while a group has heartbeats. It belongs to one goroutine.
type heartbeater struct {
	*Group
	detector *liveness.Detector
	ctx      context.Context //nolint:containedctx // ends when the client begins to close
	failing  map[string]bool // what was logged
}

// heartbeats sees to it that the waiters of the group keep their places in the queue on the
// server, that the dead before them are taken out, and that a lock that is free is taken,
// until the group is empty or the client closes.
func (g *Group) heartbeats() {
	ctx, cancel := g.engine.Open(context.Background())
	defer cancel()
	b := &heartbeater{
		Group: g, ctx: ctx, failing: map[string]bool{},
		detector: liveness.New(liveness.Config{Grace: g.engine.Grace, Period: period}),
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		reconnected := g.engine.Reconnected()
		next, more := b.beat()
		if !more || !b.rest(timer, next, reconnected) {
			return
		}
	}
}

// rest waits for the next heartbeat. It returns false when the client closes.
func (b *heartbeater) rest(timer *time.Timer, next time.Duration, reconnected <-chan struct{}) bool {
	more := b.pause(timer, next, reconnected)
	select {
	case <-reconnected: // also when something else has ended the pause
		b.detector.Gap()
	default:
	}
	return more
}

func (b *heartbeater) pause(timer *time.Timer, next time.Duration, reconnected <-chan struct{}) bool {
	began := time.Now()
	timer.Reset(next)
	select {
	case <-timer.C:
		return true
	case <-b.ctx.Done():
		return false
	case <-reconnected:
	case <-b.hurry:
	}
	if left := hurried - time.Since(began); left > 0 && !b.empty() {
		return b.engine.Sleep(b.ctx, left)
	}
	return true
}

// beat is one heartbeat and what follows from it. It returns when the next is due, and false
// when there is no waiter left.
func (b *heartbeater) beat() (time.Duration, bool) {
	waiters, subscribed, gap := b.waiting()
	if len(waiters) == 0 {
		return 0, false
	}
	if gap {
		b.detector.Gap()
	}
	b.queues.Prepare(b.ctx)
	beat, err := b.send(waiters)
	if err != nil {
		return retried, true
	}
	ours := make(map[string]bool, len(waiters))
	for _, w := range waiters {
		ours[w.Owner] = true
	}
	b.call(beat.Missing...) // they queue anew
	if beat.Free() && len(beat.Front) > 0 {
		b.call(beat.Front[0].Owner) // if it is one of ours
	}
	b.detector.Look(time.Now(), beat, func(owner string) bool { return ours[owner] }, subscribed)
	b.count()
	b.evict()
	if owner := b.detector.Nudge(time.Now()); owner != "" {
		b.nudge(owner)
	}
	return b.detector.Next(time.Now()), true
}

// nudge tells the first in the queue once more that the lock is free.
func (b *heartbeater) nudge(owner string) {
	answer, err := b.run("nudge", func(c *transport.Call) { b.kind.Nudge(c, owner) })
	if err != nil {
		return
	}
	_, err = reply.Nudged(answer)
	b.log("nudge", err)
}

// send sends the heartbeat.
func (b *heartbeater) send(waiters []Waiter) (reply.Beat, error) {
	answer, err := b.run("heartbeat", func(c *transport.Call) {
		b.kind.Heartbeat(c, b.detector.Window(), waiters, b.detector.Others())
		c.Urgent = true // before the acquires that wait to be sent: a place is at stake
	})
	if err != nil {
		return reply.Beat{}, err
	}
	beat, err := reply.DecodeBeat(answer)
	b.log("heartbeat", err)
	return beat, err
}

// count counts the listeners of the front of the queue.
func (b *heartbeater) count() {
	owners := b.detector.Ask()
	if len(owners) == 0 {
		return
	}
	channels := make([]string, len(owners))
	for i, owner := range owners {
		channels[i] = b.kind.Channel(owner)
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.engine.Command)
	defer cancel()
	counts, err := b.engine.Listeners(ctx, channels...)
	if err != nil {
		counts = nil // some nodes are not all
	}
	b.queues.health.report(b.engine, err, b.detector.Counted(time.Now(), counts))
}

// evict takes the dead out that are in the way.
func (b *heartbeater) evict() {
	for dead := range slices.Chunk(b.detector.Evict(), batch) {
		if b.evictSome(dead) < len(dead) {
			return // the queue is another by now
		}
	}
}

// evictSome returns how many were taken out.
func (b *heartbeater) evictSome(dead []liveness.Death) int {
	places := make([]reply.Place, len(dead))
	for i, d := range dead {
		places[i] = d.Place
	}
	answer, err := b.run("eviction", func(c *transport.Call) { b.kind.Evict(c, places) })
	if err != nil {
		return 0
	}
	evicted, err := reply.DecodeEvicted(answer)
	b.log("eviction", err)
	n := min(len(evicted), len(dead))
	for _, d := range dead[:n] {
		b.evicted(d)
	}
	return n
}

// evicted tells of one that was taken out.
func (b *heartbeater) evicted(d liveness.Death) {
	b.engine.Logger.Warn("redlatch: a dead waiter was evicted from the queue: its channel has no subscriber",
		"lock", b.name, "owner", limits.Quote(d.Owner), "absent", d.Absent, "redlatch", d.IsRedlatch, "was_subscribed", d.WasSubscribed)
	if tell := b.engine.Hooks.Evicted; tell != nil {
		tell(engine.Evicted{Name: b.name, Kind: b.id.kind, Owner: d.Owner, Absent: d.Absent, IsRedlatch: d.IsRedlatch, WasSubscribed: d.WasSubscribed})
	}
}

// run sends one of the scripts. They may run twice without harm, and the next
// heartbeat shows what became of one whose outcome is not known. Errors are logged;
// what a reply says is for the caller to judge.
func (b *heartbeater) run(what string, fill func(*transport.Call)) (any, error) {
	at := b.engine.Attempt()
	fill(&at.Call)
	reply, err := at.Run(b.ctx, nil)
	if err != nil && !engine.Retryable(err) {
		b.log(what, err) // connections that are lost are logged elsewhere
	}
	return reply, err
}

// log logs an error, once until it works again.
func (b *heartbeater) log(what string, err error) {
	if err != nil && !b.failing[what] {
		b.engine.Logger.Warn("redlatch: queue heartbeat failed: live waiters may be dropped, dead ones may block",
			"lock", b.name, "step", what, "error", err)
	}
	b.failing[what] = err != nil
}

// missedCounts is how many counts in a row may miss this client's own listeners
// before that is no matter of a connection that is being made anew.
const missedCounts = 3

// evictionHealth is whether dead waiters can be distinguished from live ones.
type evictionHealth struct {
	mu       sync.Mutex // guards what follows
	missed   int        // counts in a row that prove nothing
	reported bool       // that it does not work
}

// report takes the outcome of a count in, and logs when counting ceases to work,
// or works again.
func (h *evictionHealth) report(e *engine.Engine, err error, proves bool) {
	switch {
	case errors.Is(err, engine.ErrClosed), e.IsClosing():
		return
	case proves:
		if h.works() {
			e.Logger.Info("redlatch: dead waiters of fair locks can be distinguished from live ones again")
		}
		return
	case err == nil:
		err = engine.ErrOwnNotCounted
	}
	if h.fails(!engine.Retryable(err) && !errors.Is(err, engine.ErrOwnNotCounted)) {
		e.Logger.Warn("redlatch: dead waiters of fair locks cannot be distinguished from live ones, and are not evicted", "error", err)
	}
}

// works reports whether that is news.
func (h *evictionHealth) works() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.reported
	h.missed, h.reported = 0, false
	return news
}

// fails reports whether that is news.
func (h *evictionHealth) fails(forGood bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missed++
	news := !h.reported && (forGood || h.missed >= missedCounts)
	h.reported = h.reported || news
	return news
}
