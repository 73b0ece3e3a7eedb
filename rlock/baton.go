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
// settles that. It returns what is left to do here: with done false a release, of a
// lock that may be another's by now with open true.
func (t *tenure) passLock(bound time.Duration) (done, open bool, err error) {
	e := t.lock.engine
	baton := e.Baton(t.acq.Owner)
	if !t.passWith(baton) {
		baton.Drop(e)
		return false, false, nil
	}
	switch err = baton.Wait(e, bound); {
	case err == nil:
		return true, false, nil
	case errors.Is(err, redlatch.ErrLost):
		t.stained.Store(true)
		return true, false, err
	}
	t.stained.Store(true)
	return false, !core.Passing(err), err
}

// passWith gives the turn, if this has it, to the next in line with the lock.
func (t *tenure) passWith(baton *core.Baton) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == nil || !t.line.PassWith(baton) {
		return false
	}
	t.line = nil
	return true
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
