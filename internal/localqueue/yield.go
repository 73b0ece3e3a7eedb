package localqueue

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/transport"
)

// manyOthers stands for processes that cannot be counted.
const manyOthers = 4

// letOthersGo yields to other processes. If any wait, they have been woken by the release just
// sent, and acquire the lock as often as this process did, each of them: for a pause alone they
// would have to be as fast as this process. It returns false when the caller has left
// meanwhile.
func (c *caller) letOthersGo(ctx context.Context, a *acquire.Acquisition, y Yield) bool {
	switch {
	case y.Turns == 0:
		return true
	case a.Deaf: // it hears no turns of others
		a.Engine.Sleep(ctx, y.Patience) // that the client closes shows in what follows
		return ctx.Err() == nil
	}
	others, counted := c.countOthers(ctx, a)
	if ctx.Err() != nil {
		return false // which says nothing about others
	}
	c.queue.Others(others, counted)
	if others <= 0 {
		return true
	}
	if sub, err := c.subscription(ctx, a); err == nil {
		c.awaitTurns(ctx, a, sub, newYielding(y, others))
	}
	return ctx.Err() == nil
}

// countOthers returns how many processes wait, besides this one. It guesses if that cannot
// be found out soon.
func (c *caller) countOthers(ctx context.Context, a *acquire.Acquisition) (n int, counted bool) {
	n, counted = a.Listeners(ctx)
	switch {
	case !counted:
		return manyOthers, false
	case c.queue.Subscription() != nil:
		return max(n-1, 0), true
	}
	return n, true
}

// awaitTurns waits until the others had their turns, or none came for too long.
func (c *caller) awaitTurns(ctx context.Context, a *acquire.Acquisition, sub transport.Subscription, y *yielding) {
	c.sub, c.yield = sub, y
	_ = a.Sleep(ctx, y.patience) // an end of the call shows in what follows
	c.sub, c.yield = nil, nil
}

// yielding is a wait for the turns of others.
type yielding struct {
	began       time.Time
	turns, had  int
	least, most time.Duration // most 0: without a bound
	patience    time.Duration
}

func newYielding(y Yield, others int) *yielding {
	return &yielding{
		began: time.Now(), turns: y.Turns * others,
		least: y.Span * time.Duration(others), most: y.Most * time.Duration(others), patience: y.Patience,
	}
}

// onEvent counts an event, and reports whether the others had their turns.
func (y *yielding) onEvent(e transport.Event) (over bool, d time.Duration) {
	y.had += 1 + e.Coalesced
	took := time.Since(y.began)
	over = y.had >= y.turns && took >= y.least || y.most > 0 && took >= y.most
	return over, y.patience
}
