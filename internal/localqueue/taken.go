package localqueue

import (
	"errors"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Fill is part of acquire.Transfer. What ends a hold goes before the acquires that wait to be
// sent.
func (t *Transfer) Fill(c *transport.Call, r *acquire.Request) {
	t.kind.Transfer(c, r, t.Owner)
	c.Urgent = true
}

// Taken is part of acquire.Transfer. The transfer is the holder's once it is settled.
func (t *Transfer) Taken(reply any, err error) (again bool, _ error) {
	if err != nil {
		t.Settle(plainly(err))
		return false, err
	}
	out, err := t.kind.Decode(reply)
	if err == nil && !out.Granted {
		t.Settle(engine.ErrLost)
		return true, nil
	}
	t.Settle(err)
	return false, err
}

// plainly is what an error of the next caller says to the holder: why that one left is not
// the holder's business.
func plainly(err error) error {
	switch {
	case errors.Is(err, engine.ErrUncertain):
		return engine.ErrUncertain
	case errors.Is(err, engine.ErrNotSent):
		return engine.ErrNotSent
	}
	return err
}

// Transfer is part of acquire.Turn.
func (q *Queue) Transfer(owner any) acquire.Transferred {
	if !q.HasNext() {
		return nil
	}
	t := q.queues.Transfer(owner)
	if !q.PassLock(t) {
		t.Free()
		return nil
	}
	return t
}
