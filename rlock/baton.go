package rlock

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
)

// passLock passes the lock on to the next in line, who sends the call that takes it
// over; so it is the next one's attempt whose outcome may be open, and its ghost that
// settles that. Unless done, what is left to do here is a release, within left, of a
// lock that may be another's by now if open says so.
func (t *tenure) passLock(bound time.Duration) (left time.Duration, done, open bool, err error) {
	e := t.lock.engine
	baton := t.passOnWith(e)
	if baton == nil {
		return bound, false, false, nil
	}
	began := time.Now()
	switch err = baton.Wait(e, bound); {
	case err == nil:
		return 0, true, false, nil
	case errors.Is(err, redlatch.ErrLost):
		t.stained.Store(true)
		return 0, true, false, err
	}
	t.stained.Store(true)
	return bound - time.Since(began), false, !core.Passing(err), err
}

// passOnWith gives the turn, if this has it, to the next in line with the lock. It returns
// nil when nobody takes that.
func (t *tenure) passOnWith(e *core.Engine) *core.Baton {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == nil || !t.line.HasNext() {
		return nil
	}
	baton := e.Baton(t.acq.Owner)
	if !t.line.PassWith(baton) {
		baton.Drop(e)
		return nil
	}
	t.line = nil
	return baton
}

// taken tells the holder who passed its lock on what came of that. Without an error it
// returns false when that one did not hold it.
func taken(baton *core.Baton, reply any, err error) (bool, error) {
	if err != nil {
		baton.Settle(plainly(err))
		return false, err
	}
	passed, err := codec.Passed(reply)
	if err == nil && !passed {
		baton.Settle(redlatch.ErrLost)
		return false, nil
	}
	baton.Settle(err)
	return passed, err
}

// plainly is what an error of the next in line says to the holder: why that one left is
// not the holder's business.
func plainly(err error) error {
	switch {
	case errors.Is(err, redlatch.ErrUncertain):
		return redlatch.ErrUncertain
	case errors.Is(err, redlatch.ErrNotSent):
		return redlatch.ErrNotSent
	}
	return err
}
