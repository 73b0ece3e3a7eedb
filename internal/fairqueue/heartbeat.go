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
	// period is the time between two heartbeats of a group, unless the queue is long.
	period = 5 * time.Second
	// hurried is the minimum time between two heartbeats.
	hurried = 500 * time.Millisecond
	// retries is how many times a failed heartbeat is retried while the places last: once a second, or less often if the
	// queue is long.
	retries = 15
	// idle is the pause between polls at which the next owner of a free lock is considered missing.
	idle = time.Second / 2
)

// beginHeartbeats schedules the first heartbeat after one period, so that short waits don't cause any. It is called
// with mu held.
func (g *group) beginHeartbeats() {
	if g.beating {
		return
	}
	g.beating = true
	g.start = time.AfterFunc(period, func() { g.engine.Go(g.heartbeats) })
}

// plan sets the time of the next poll. If isIdle is true, it starts the heartbeats immediately, because the next owner
// may be dead.
func (g *group) plan(nap time.Duration, isIdle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = time.Now().Add(nap)
	if isIdle {
		g.hastenHeartbeats()
	}
}

// hastenHeartbeats starts the heartbeats immediately. It is called with mu held.
func (g *group) hastenHeartbeats() {
	if g.beating && g.start.Stop() {
		g.start.Reset(0)
	}
}

// endHeartbeats ends the heartbeats if the group is empty. It is called with mu held.
func (g *group) endHeartbeats() {
	switch {
	case g.waiting.Len() > 0 || !g.beating:
	case g.start.Stop():
		g.beating = false
	default:
		acquire.Signal(g.hurry)
	}
}

// due returns the waiters, the last owner with a subscription, and whether messages may have been missed. An earlier
// owner might acquire the lock and unsubscribe before the subscribers are counted. If the group is empty, due ends the
// heartbeats.
func (g *group) due() (waiters []Waiter, subscribed string, gap bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiters = make([]Waiter, 0, len(g.byOwner))
	for e := g.waiting.Front(); e != nil; e = e.Next() {
		c, _ := e.Value.(*caller)
		if all := g.byOwner[c.waiter.Owner]; all[len(all)-1] != c {
			continue // the last waiter with the same owner counts
		}
		waiters = append(waiters, c.waiter)
		if c.sub != nil {
			subscribed = c.waiter.Owner
		}
	}
	gap, g.gap = g.gap, false
	if g.beating = len(waiters) > 0; g.beating {
		g.beat = time.Now()
	}
	return waiters, subscribed, gap
}

func (g *group) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.Len() == 0
}

// A heartbeater is used by one goroutine.
type heartbeater struct {
	*group
	detector *liveness.Detector
	ctx      context.Context //nolint:containedctx // ends when the client begins to close
	failing  map[string]bool // steps whose last error was logged
}

// heartbeats runs until the group is empty or the client is being closed.
func (g *group) heartbeats() {
	ctx, cancel := g.engine.Open(context.Background())
	defer cancel()
	b := &heartbeater{group: g, ctx: ctx, failing: map[string]bool{}, detector: liveness.New(g.engine.Grace, period)}
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

func (b *heartbeater) rest(timer *time.Timer, next time.Duration, reconnected <-chan struct{}) bool {
	more := b.pause(timer, next, reconnected)
	select {
	case <-reconnected: // even if something else ended the pause
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

// beat sends one heartbeat. It returns the time until the next one, and false if there are no waiters.
func (b *heartbeater) beat() (time.Duration, bool) {
	waiters, subscribed, gap := b.due()
	if len(waiters) == 0 {
		return 0, false
	}
	if gap {
		b.detector.Gap()
	}
	b.queues.Prepare(b.ctx)
	beat, err := b.send(waiters)
	if err != nil {
		return b.detector.Kept() / retries, true
	}
	ours := make(map[string]bool, len(waiters))
	for _, w := range waiters {
		ours[w.Owner] = true
	}
	b.call(beat.Missing...)
	if beat.Free() && len(beat.Front) > 0 {
		b.call(beat.Front[0].Owner)
	}
	b.detector.Look(time.Now(), beat, func(owner string) bool { return ours[owner] }, subscribed)
	b.count()
	b.evict()
	if owner := b.detector.Nudge(time.Now()); owner != "" {
		if answer, err := b.run("nudge", func(c *transport.Call) { b.kind.Nudge(c, owner) }); err == nil {
			_, err = reply.Nudged(answer)
			b.log("nudge", err)
		}
	}
	return b.detector.Next(time.Now()), true
}

func (b *heartbeater) send(waiters []Waiter) (reply.Beat, error) {
	answer, err := b.run("heartbeat", func(c *transport.Call) {
		b.kind.Heartbeat(c, b.detector.Keep(), b.detector.Window(), waiters, b.detector.Others())
		c.Urgent = true // if it is late, waiters may lose their places
	})
	if err != nil {
		return reply.Beat{}, err
	}
	beat, err := reply.DecodeBeat(answer)
	b.log("heartbeat", err)
	return beat, err
}

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
		counts = nil // some of the nodes may not have been queried
	}
	b.queues.health.report(b.engine, err, b.detector.Counted(time.Now(), counts))
}

// evict evicts the dead waiters. It stops if the queue has changed and a waiter was not evicted.
func (b *heartbeater) evict() {
	for dead := range slices.Chunk(b.detector.Evict(), batch) {
		places := make([]reply.Place, len(dead))
		for i, d := range dead {
			places[i] = d.Place
		}
		answer, err := b.run("eviction", func(c *transport.Call) { b.kind.Evict(c, b.detector.Keep(), places) })
		if err != nil {
			return
		}
		evicted, err := reply.DecodeEvicted(answer)
		b.log("eviction", err)
		n := min(len(evicted), len(dead))
		for _, d := range dead[:n] {
			b.evicted(d)
		}
		if n < len(dead) {
			return
		}
	}
}

func (b *heartbeater) evicted(d liveness.Death) {
	b.engine.Logger.Warn("redlatch: a dead waiter was evicted from the queue: its channel has no subscriber",
		"lock", b.name, "owner", limits.Quote(d.Owner), "absent", d.Absent, "redlatch", d.IsRedlatch, "was_subscribed", d.WasSubscribed)
	if tell := b.engine.Hooks.Evicted; tell != nil {
		tell(engine.Evicted{Name: b.name, Kind: b.id.kind, Owner: d.Owner, Absent: d.Absent, IsRedlatch: d.IsRedlatch, WasSubscribed: d.WasSubscribed})
	}
}

// run sends a script that may run twice. It logs errors unless the connection was lost.
func (b *heartbeater) run(what string, fill func(*transport.Call)) (any, error) {
	at := b.engine.Attempt()
	fill(&at.Call)
	reply, err := at.Run(b.ctx, nil)
	if err != nil && !engine.Retryable(err) {
		b.log(what, err)
	}
	return reply, err
}

// log logs an error of a step, unless the same step failed the last time.
func (b *heartbeater) log(what string, err error) {
	if err != nil && !b.failing[what] {
		b.engine.Logger.Warn("redlatch: queue heartbeat failed: live waiters may be dropped, and dead waiters may block the queue",
			"lock", b.name, "step", what, "error", err)
	}
	b.failing[what] = err != nil
}

// missedCounts is how many counts in a row must miss our own subscribers before that is logged.
const missedCounts = 3

type evictionHealth struct {
	mu       sync.Mutex // guards the fields below
	missed   int        // counts in a row that proved nothing
	reported bool
}

// report processes the result of a count. It logs when counting starts to fail and when it works again.
func (h *evictionHealth) report(e *engine.Engine, err error, proves bool) {
	if errors.Is(err, engine.ErrClosed) || e.IsClosing() {
		return
	}
	if err == nil {
		err = engine.ErrOwnNotCounted
	}
	h.mu.Lock()
	was := h.reported
	if h.missed++; proves {
		h.missed, h.reported = 0, false
	} else if forGood := !engine.Retryable(err) && !errors.Is(err, engine.ErrOwnNotCounted); forGood || h.missed >= missedCounts {
		h.reported = true
	}
	is := h.reported
	h.mu.Unlock()
	switch {
	case was && !is:
		e.Logger.Info("redlatch: dead waiters of fair locks are detected again")
	case !was && is:
		e.Logger.Warn("redlatch: cannot detect dead waiters of fair locks; they are not evicted", "error", err)
	}
}
