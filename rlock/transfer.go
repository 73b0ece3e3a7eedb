package rlock

import (
	"errors"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/reply"
)

// passLock gives the turn, if this has it, to the next in line with the lock. That one
// sends the call that takes it over, so it is its attempt whose outcome may be open, and
// its ghost that settles that. Nil: nobody takes it.
func (t *tenure) passLock() *localqueue.Transfer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == nil || !t.line.HasNext() {
		return nil
	}
	transfer := t.lock.local.Transfer(t.acq.Owner)
	if !t.line.PassLock(transfer) {
		transfer.Free()
		return nil
	}
	t.line = nil
	return transfer
}

// taken tells the holder who passed its lock on what came of that. Without an error it
// returns false when that one did not hold it.
func taken(transfer *localqueue.Transfer, answer any, err error) (bool, error) {
	if err != nil {
		transfer.Settle(plainly(err))
		return false, err
	}
	passed, err := reply.Passed(answer)
	if err == nil && !passed {
		transfer.Settle(redlatch.ErrLost)
		return false, nil
	}
	transfer.Settle(err)
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
