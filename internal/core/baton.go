package core

import (
	"fmt"
	"time"
)

// Baton is a lock on its way from its holder to the next in line, who takes it over in
// one step: it is not free in between. It comes with the turn. Get one from
// [Engine.Baton]; whoever has it in the end settles it once, and does not use it after.
type Baton struct {
	// Owner is whose the lock is, its text boxed.
	Owner any

	settled chan error // room for one
}

// Baton returns a baton for the lock that owner holds. It goes back with Wait, or Drop.
func (e *Engine) Baton(owner any) *Baton {
	b, ok := e.batons.Get().(*Baton)
	if !ok {
		b = &Baton{settled: make(chan error, 1)}
	}
	b.Owner = owner
	return b
}

// Settle tells the holder what came of it: nil when the lock has been taken over;
// ErrLost when the holder did not hold it; ErrNotSent when nothing has happened; other
// errors leave that open.
func (b *Baton) Settle(outcome error) { b.settled <- outcome }

// Wait returns what Settle was told. Whoever has the baton sends one call and is bound
// by the command timeout; a wait that is bound to less ends with ErrUncertain.
func (b *Baton) Wait(e *Engine, bound time.Duration) error {
	if bound >= e.Command {
		err := <-b.settled
		b.Drop(e)
		return err
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case err := <-b.settled:
		b.Drop(e)
		return err
	case <-timer.C:
		return fmt.Errorf("%w: no reply within %v", ErrUncertain, bound.Round(time.Millisecond)) // the baton is not ours
	}
}

// Drop gives a baton back that nobody else has.
func (b *Baton) Drop(e *Engine) {
	b.Owner = nil
	e.batons.Put(b)
}

// PassWith is Pass with a lock that is still held: the next in line takes it over. It
// returns false, and the turn stays where it is, when the lock is to be freed instead:
// nobody is next, it is the others' turn, or there may be some who would wait too long
// for a message, since they free the lock after each turn.
func (l *Line) PassWith(b *Baton) bool {
	now := time.Now()
	l.mu.Lock()
	p := l.first
	if p == nil || l.due(now) || !l.crowd.alike(l.others, now) {
		l.mu.Unlock()
		return false
	}
	l.remove(p)
	p.Passed, p.Courtesy, p.Baton = true, l.handOver(), b
	l.state.Held = false
	l.mu.Unlock()
	p.Ready <- struct{}{} // has room: it is sent once
	l.put()
	return true
}

// PassUnused passes on a turn that came with a baton, if that is not nil, which was not
// used: to the next, or back to the holder.
func (l *Line) PassUnused(b *Baton) {
	if b != nil {
		if l.PassWith(b) {
			return
		}
		b.Settle(ErrNotSent)
	}
	l.Pass(false)
}
