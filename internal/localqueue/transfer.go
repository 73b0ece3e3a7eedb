package localqueue

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Baton is a lock on its way from its holder to the next in line, who takes it over in
// one step: it is not free in between. It comes with the turn. Get one from
// [Lines.Baton]; whoever has it in the end settles it once, and does not use it after.
type Baton struct {
	// Owner is whose the lock is, its text boxed.
	Owner any

	lines   *Lines
	settled chan error // room for one
	timer   *time.Timer
}

// Baton returns a baton for the lock that owner holds. It goes back with Wait, or Free.
func (ls *Lines) Baton(owner any) *Baton {
	b, ok := ls.batons.Get().(*Baton)
	if !ok {
		b = &Baton{lines: ls, settled: make(chan error, 1), timer: time.NewTimer(time.Hour)}
		b.timer.Stop()
	}
	b.Owner = owner
	return b
}

// Settle tells the holder what came of it: nil when the lock has been taken over;
// ErrLost when the holder did not hold it; ErrNotSent when nothing has happened; other
// errors leave that open.
func (b *Baton) Settle(outcome error) { b.settled <- outcome }

// Wait returns what Settle was told, within bound. Later than that it is not known what
// becomes of the lock, and the error wraps ErrUncertain.
func (b *Baton) Wait(bound time.Duration) error {
	b.timer.Reset(bound)
	select {
	case err := <-b.settled:
		b.timer.Stop()
		b.Free()
		return err
	case <-b.timer.C:
		// Whoever has the baton may settle it yet: it is not used again.
		return fmt.Errorf("%w: no reply within %v", transport.ErrUncertain, bound.Round(time.Millisecond))
	}
}

// Free gives a baton back that nobody else has.
func (b *Baton) Free() {
	b.Owner = nil
	b.lines.batons.Put(b)
}

// PassWith is Pass with a lock that is still held: the next in line takes it over. It
// returns false, and the turn stays where it is, when the lock is to be freed instead:
// nobody is next, or is busy asking, it is the others' turn, or there may be some who
// would wait too long for a message, since they free the lock after each turn.
func (l *Line) PassWith(b *Baton) bool {
	l.mu.Lock()
	now := time.Now() // once: a lock that is passed on comes without courtesy
	p := l.first
	if p == nil || p.asks || l.due(now) || !l.crowd.alike(l.others, now) {
		l.mu.Unlock()
		return false
	}
	l.remove(p)
	p.Passed, p.Courtesy, p.Baton = true, l.handOver(now), b
	l.state.Held = false
	l.mu.Unlock()
	p.Ready <- struct{}{} // has room: it is sent once
	l.put()
	return true
}

// PassUnused passes on a turn whose baton, if that is not nil, was not used: both to the
// next, or the turn alone, and the lock is its holder's again, who frees it.
func (l *Line) PassUnused(b *Baton) {
	if b != nil {
		if l.PassWith(b) {
			return
		}
		b.Settle(transport.ErrNotSent)
	}
	l.Pass(false)
}
