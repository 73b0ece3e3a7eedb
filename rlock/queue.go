package rlock

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/transport"
)

// queue waits for this caller's turn in its process, then for the lock. The turn
// stays with the hold until that is given up or lost.
func (a *acquisition) queue(ctx context.Context) (*Hold, error) {
	l := a.lock
	line := l.local.Join(l.proto.Kind(), l.proto.Key())
	if !a.waits() {
		switch has, refused, state := line.TryEnter(); {
		case refused:
			a.learn(state)
			return nil, redlatch.ErrNotAcquired
		case !has:
			return a.run(ctx) // besides the line: only Redis knows
		}
	} else if p := line.Enter(); p != nil {
		if hold, err := a.stand(ctx, line, p); hold != nil || err != nil {
			return hold, err
		}
		a.line, a.passed, a.transfer = line, p.Passed, p.Transfer
		if !a.letOthersGo(ctx, p.Yield) {
			a.passOn()
			return nil, a.gaveUp(ctx)
		}
	}
	a.line = line
	hold, err := a.run(ctx)
	if err != nil {
		a.passOn()
		return nil, err
	}
	hold.takeLine(line)
	return hold, nil
}

// takeLine keeps the turn with a hold that was acquired. One that has ended by
// now has passed nothing on.
func (h *Hold) takeLine(line *localqueue.Queue) {
	t := h.tenure
	line.Granted(t.owner)
	line.CloseIdle()
	t.mu.Lock()
	over := t.freed || h.ended.Load() != nil
	if !over {
		t.line = line
	}
	t.mu.Unlock()
	if over {
		line.Pass(true) // lost already
	}
}

// stand waits for the turn, which has come when it returns neither a hold nor an
// error. The next in line asks Redis now and then, in case the hold that it waits
// for is one that Redis has forgotten.
func (a *acquisition) stand(ctx context.Context, line *localqueue.Queue, p *localqueue.Waiter) (*Hold, error) {
	e := a.lock.engine
	a.waited = line.State().Known
	if err := a.beginWait(); err != nil {
		line.Quit(p)
		return nil, err
	}
	alarm := alarms{silence: a.began.Add(e.Command), poll: time.Now().Add(e.PollCap)}
	timer := time.NewTimer(alarm.next())
	defer timer.Stop()
	for {
		select {
		case <-p.Ready:
			a.waited = a.waited || line.State().Known
			return nil, nil
		case <-ctx.Done():
			state := line.State()
			line.Quit(p)
			return nil, a.leftLine(ctx, state)
		case <-e.Closing():
			line.Quit(p)
			return nil, redlatch.ErrClosed
		case <-timer.C:
			held, err := a.rouse(ctx, line, p, &alarm)
			switch {
			case held:
				line.Quit(p)
				return a.hold, nil
			case err != nil:
				line.Quit(p)
				return nil, err
			}
			timer.Reset(alarm.next())
		}
	}
}

// alarms are when one who stands in line is to look up. They share a timer, for
// thousands may stand there.
type alarms struct {
	silence time.Time // when Redis must have answered somebody; zero: that was looked at
	poll    time.Time // when the next in line asks
}

func (al *alarms) next() time.Duration {
	if !al.silence.IsZero() && al.silence.Before(al.poll) {
		return time.Until(al.silence)
	}
	return time.Until(al.poll)
}

// rouse does what is due for one who stands in line: it may find that Redis is silent,
// or that the lock is free.
func (a *acquisition) rouse(ctx context.Context, line *localqueue.Queue, p *localqueue.Waiter, alarm *alarms) (held bool, err error) {
	now := time.Now()
	if !alarm.silence.IsZero() && !now.Before(alarm.silence) {
		alarm.silence = time.Time{}
		if state := line.State(); !state.Known && !a.waited {
			return false, silent(state)
		}
	}
	if now.Before(alarm.poll) {
		return false, nil
	}
	alarm.poll = now.Add(a.lock.engine.PollCap)
	if !line.IsNext(p) || !line.State().Held {
		return false, nil // somebody else asks
	}
	line.Asks(p, true)
	defer line.Asks(p, false)
	return a.peek(ctx)
}

// peek is an attempt without the turn. It returns an error only when that ends
// the wait.
func (a *acquisition) peek(ctx context.Context) (bool, error) {
	if a.hold == nil {
		a.fresh()
	}
	held, err := a.attempt(ctx)
	if ctx.Err() != nil || a.rides(err) {
		err = nil
	}
	return held, err
}

// learn takes over what the line knows of the holder.
func (a *acquisition) learn(state localqueue.State) {
	if !state.Holder.IsZero() {
		a.holder, a.ttl = state.Holder, state.TTL
	}
}

// leftLine returns why a wait in line ended with ctx.
func (a *acquisition) leftLine(ctx context.Context, state localqueue.State) error {
	a.learn(state)
	a.away = state.Away
	if a.away == nil && !state.Known {
		a.away = silent(state)
	}
	return a.gaveUp(ctx)
}

// silent is the error of a caller in a line to which Redis has not answered yet.
func silent(state localqueue.State) error {
	if state.Away != nil {
		return state.Away
	}
	return fmt.Errorf("%w: Redis has not answered those before", redlatch.ErrNotSent)
}

const (
	// manyOthers stands for others that nobody can count.
	manyOthers = 4
	// countPatience is how long counting them may hold up who has the turn.
	countPatience = 200 * time.Millisecond
)

// letOthersGo is the courtesy to other processes. If any wait, they have been woken
// by the release just sent, and come in as often as this process did, each of them:
// for a pause alone they would have to be as fast as we are. It returns false when
// the caller has left meanwhile.
func (a *acquisition) letOthersGo(ctx context.Context, c localqueue.Yield) bool {
	if c.Turns == 0 {
		return true
	}
	others, counted := a.countOthers(ctx)
	if ctx.Err() != nil {
		return false // which says nothing about others
	}
	a.line.Others(others, counted)
	if others <= 0 {
		return true
	}
	if a.hold == nil {
		a.fresh()
	}
	if sub, err := a.subscription(ctx); err == nil {
		a.awaitTurns(ctx, sub, c, others)
	}
	return ctx.Err() == nil
}

// countOthers returns how many processes wait, besides this one. It guesses if that
// cannot be found out soon.
func (a *acquisition) countOthers(ctx context.Context) (n int, counted bool) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	counts, err := a.lock.engine.Listeners(ctx, a.lock.proto.Channel(nil))
	switch {
	case err != nil:
		a.lock.engine.Lacks("+pubsub|numsub +role", "who waits in other processes cannot be counted: others are let go first on suspicion", err)
		return manyOthers, false
	case a.line.Subscription() != nil:
		return max(int(counts[0])-1, 0), true
	}
	return int(counts[0]), true
}

// awaitTurns waits until the lock was freed so many times in so long a time, or has not
// been for as long as this caller is patient.
func (a *acquisition) awaitTurns(ctx context.Context, sub transport.Subscription, c localqueue.Yield, others int) {
	silence := time.NewTimer(c.Patience)
	defer silence.Stop()
	began := time.Now()
	least, most := c.Span*time.Duration(others), c.Most*time.Duration(others)
	for had := 0; had < c.Turns*others || time.Since(began) < least; {
		if most > 0 && time.Since(began) >= most {
			return
		}
		select {
		case e, works := <-sub.Events():
			if !works {
				return // whoever sleeps on it next finds out
			}
			had += 1 + e.Merged
			silence.Reset(c.Patience)
		case <-silence.C:
			return
		case <-ctx.Done():
			return
		case <-a.lock.engine.Closing():
			return
		}
	}
}

// subscription returns a subscription to the lock's channel: the line's, which
// those who come after use, too, or one of this caller's own.
func (a *acquisition) subscription(ctx context.Context) (transport.Subscription, error) {
	if a.line == nil {
		return a.subscribe(ctx)
	}
	if sub := a.line.Subscription(); sub != nil {
		select {
		case _, works := <-sub.Events():
			if works {
				return sub, nil // and the message it had is an old one
			}
			sub.Close()
			a.line.Keep(nil)
		default:
			return sub, nil
		}
	}
	sub, err := a.subscribe(ctx)
	if err != nil {
		return nil, err
	}
	a.line.Keep(sub)
	return sub, nil
}

// deaf returns why a subscription ended for good.
func (a *acquisition) deaf() error {
	if a.line != nil {
		a.line.Keep(nil)
		a.sub.Close()
	}
	return a.sub.Err()
}

// isAway remembers why Redis cannot be reached.
func (a *acquisition) isAway(err error) {
	a.away = err
	if a.line != nil {
		a.line.Away(err)
	}
}

// passOn gives the turn to the next in line. With an attempt in flight that is
// left to its ghost: until that has come to rest, the next would find the lock
// held by us.
func (a *acquisition) passOn() {
	line := a.line
	a.line = nil
	if a.doubtful == nil || !a.doubtful.own.bequeath(line) {
		line.Pass(false)
	}
}

// bequeath leaves the turn to the tenure's ghost. It returns false when the ghost
// has gone already.
func (t *tenure) bequeath(line *localqueue.Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.atRest {
		return false
	}
	t.line = line
	return true
}

// rest says that the tenure's ghost has gone.
func (t *tenure) rest() {
	t.mu.Lock()
	t.atRest = true
	line := t.line
	t.line = nil
	t.mu.Unlock()
	if line != nil {
		line.Pass(false)
	}
}

// passOn gives the turn of a tenure that is over to the next in line. Freed says
// that the lock comes with it.
func (t *tenure) passOn(freed bool) {
	t.mu.Lock()
	line := t.line
	t.line = nil
	t.mu.Unlock()
	if line != nil {
		line.Pass(freed)
	}
}

// freeing is a tenure whose last release is on its way.
type freeing tenure

// Started is part of engine.Follower.
func (f *freeing) Started() { (*tenure)(f).passOn(true) }
