package rwqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
)

// Pass is part of acquire.Turn: the readers that wait ask, and then the next writer. If the lock was
// not released, only the leader of the readers asks.
func (t *writeTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	q.writer = nil
	q.state.Held = false
	q.countTurn(released)
	if released {
		q.wakeReaders(true)
	} else {
		q.wakeLeader()
	}
	if q.asking == 0 {
		q.passOn()
	}
	q.mu.Unlock()
	q.leave()
}

// Transfer is part of acquire.Turn: readers may have the lock besides, so it is not
// transferred.
func (*writeTurn) Transfer(any) *acquire.Transfer { return nil }

// Pass is part of acquire.Turn. The last reader lets the writer ask that waits for it.
func (t *readTurn) Pass(released bool) {
	q := (*queue)(t)
	q.mu.Lock()
	if q.reading--; q.reading == 0 {
		q.drained = time.Now()
		if released && q.writer != nil {
			q.writer.signal()
		}
	}
	q.mu.Unlock()
	q.leave()
}

func (*readTurn) Transfer(any) *acquire.Transfer { return nil }

// Writers of one process let others go first after so many turns, or turns for so long. The
// pause is long enough for a waiter that was woken to ask.
const (
	turnsMax  = 32
	turnsTime = 20 * time.Millisecond
	pause     = 10 * time.Millisecond
)

// countTurn counts a turn of a writer that had the lock, mu held.
func (q *queue) countTurn(released bool) {
	if !released {
		q.turns = 0
		return
	}
	if q.turns == 0 {
		q.first = time.Now()
	}
	q.turns++
}

// mustPause reports whether it is the turn of other processes, if there are any, and begins to
// count anew then.
func (q *queue) mustPause() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.turns >= turnsMax || q.turns > 0 && time.Since(q.first) >= turnsTime
	if due {
		q.turns = 0
	}
	return due
}

// letOthersGo lets the waiters of other processes, which the last release has woken, ask before
// this writer does. It returns false when the wait is over.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition) bool {
	if !c.queue.mustPause() || !c.hasOthers(ctx, a) {
		return ctx.Err() == nil
	}
	a.Engine.Sleep(ctx, pause)
	return ctx.Err() == nil
}

// hasOthers reports whether other processes wait for the lock, as far as that can be found out.
func (c *caller) hasOthers(ctx context.Context, a *acquire.Acquisition) bool {
	n, counted := a.Listeners(ctx)
	if !counted {
		return true
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.leader != nil {
		n-- // this process listens for it
	}
	return n > 0
}
