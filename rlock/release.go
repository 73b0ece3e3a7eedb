package rlock

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Unlock gives the hold up. The last hold of its owner frees the lock and wakes a
// waiter, or passes it on to the next caller of this process; before that, the lock
// stays with the holds that remain, in any order.
// It needs no context and works when every context has ended: it takes one
// command timeout at most, less when less is left of the lease. The hold's
// contexts end, with cause ErrNotHeld, before anything is sent. Later calls do
// nothing and return the first one's result.
//
// It returns nil when the lock was held until now. ErrLost: the hold was lost
// before. ErrMaxHold: it had reached its maximum; the lock is freed all the same.
// ErrUncertain or ErrNotSent: Redis did not answer in time; the release goes on
// in the background until the lease is over, for an owner that was given for ten
// seconds. ErrClosed: the client was closed,
// and the lock is left to its lease. It sends one EVALSHA, or none when the next
// caller of this process takes the lock over with its own.
func (h *Hold) Unlock() error {
	h.giveUp.Do(func() {
		t := h.tenure
		now := time.Now()
		h.result = t.lock.wrap("unlock", t.owner, h.unlock(now))
		h.observeRelease(now)
		h.leaveSpare()
	})
	return h.result
}

// unlock is the first Unlock. The order is watchdog, life, server: a renewal
// that ran after the release would report a loss.
func (h *Hold) unlock(now time.Time) error {
	t := h.tenure
	e := t.lock.engine
	e.Join()
	defer e.Leave()
	e.Watchdog.Remove(&h.lease)
	bound := min(e.Command, h.lease.Deadline().Remaining(now))
	ended := h.finish(endGiven, now)
	if ended != nil && !errors.Is(ended, redlatch.ErrMaxHold) {
		return ended
	}
	if ended != nil {
		bound = e.Command // the lock may be others' of this owner, for longer
	}
	arrivals := t.arrivals.Load()
	left := t.leave(h)
	if ended != nil && t.shared && left == 0 && h.isOver() {
		return ended // by now the lock may be that of another user of the owner
	}
	err := engine.Explain(t.lower(left, max(bound, 0)))
	switch {
	case ended != nil && unsettled(err):
		return fmt.Errorf("%w: %w", ended, err)
	case ended != nil:
		return ended
	case errors.Is(err, redlatch.ErrLost) && t.arrivals.Load() != arrivals:
		return nil // what settles an inner unlock has arrived at a count without this hold
	case errors.Is(err, redlatch.ErrWrongType):
		return fmt.Errorf("%w: %w", redlatch.ErrLost, err) // something else took its key
	}
	return err
}

// isOver reports whether the hold's own lease is over on the server.
func (h *Hold) isOver() bool {
	margin := h.tenure.lock.engine.LossMargin(h.lease.TTL)
	return h.lease.Deadline().Remaining(time.Now())+margin <= 0
}

// lower brings the server's count to the number of holds left.
func (t *tenure) lower(left int, bound time.Duration) error {
	switch {
	case t.shared:
		return t.releaseShared(bound)
	case left == 0:
		return t.free(bound)
	}
	return t.step(bound)
}

// free frees the lock.
func (t *tenure) free(bound time.Duration) error {
	var err error
	if transfer := t.passLock(); transfer != nil {
		began := time.Now()
		err = transfer.Wait(bound)
		if err == nil || errors.Is(err, redlatch.ErrLost) {
			return err
		}
		bound -= time.Since(began)
	}
	if err == nil || bound > 0 {
		open := err != nil && !engine.Passing(err) // the lock may be another's by now
		err = t.persist(bound, (*freeing)(t), open, func(c *transport.Call) { t.lock.proto.Release(c, &t.acq, 0) })
	}
	if unsettled(err) {
		t.discard()
	}
	return err
}

func unsettled(err error) bool {
	return engine.Passing(err) || errors.Is(err, redlatch.ErrUncertain)
}

// step lowers the count to what remains, when its turn has come.
func (t *tenure) step(bound time.Duration) error {
	if !t.takeFor(bound) {
		return nil // whoever has the turn arrives at a count without this hold
	}
	target := t.count()
	if target == 0 {
		t.give()
		return nil // the last one frees the lock
	}
	rest := protocol.Acquisition{Owner: t.acq.Owner, Lease: t.remaining().Milliseconds()}
	err := t.release(&rest, target, bound)
	if unsettled(err) {
		t.arrive(nil) // gives the turn back
		return nil
	}
	t.give()
	if errors.Is(err, redlatch.ErrLost) {
		if t.isFreed() {
			return nil // the last hold was given up meanwhile
		}
		t.lose()
	}
	return err
}

// release sends the release to target until the server answers, for bound at
// most. Repeating it is safe: it names the count to arrive at.
func (t *tenure) release(acq *protocol.Acquisition, target int64, bound time.Duration) error {
	return t.persist(bound, nil, false, func(c *transport.Call) { t.lock.proto.Release(c, acq, target) })
}

// releaseShared lowers the count by one, with a latch that makes a repetition
// harmless, and that is deleted as soon as there is an answer, as Redisson does.
func (t *tenure) releaseShared(bound time.Duration) error {
	latch := codec.LatchKey(t.lock.proto.Key(), requestID())
	acq := protocol.Acquisition{Owner: t.acq.Owner, Lease: t.restLease()}
	fill := func(c *transport.Call) { t.lock.proto.ReleaseShared(c, &acq, latch) }
	forget := func() {
		del := &transport.Call{Command: "DEL", NumKeys: 1, Args: []any{latch}}
		t.lock.engine.Transport.Start(del, func(any, error) {}) // else it expires
	}
	err := t.persist(bound, nil, false, fill)
	if unsettled(err) {
		t.releaseLater(fill, forget)
	} else {
		forget()
	}
	return err
}

// restLease is the lease that a shared owner's release leaves to others who use
// it: what the holds here are owed, else the client's.
func (t *tenure) restLease() int64 {
	if t.count() > 0 {
		return t.remaining().Milliseconds()
	}
	return t.lock.engine.Lease.Milliseconds()
}

// requestID is 16 random bytes in hexadecimal, as Redisson's.
func requestID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// persist runs a release until the server answers, for bound at most. Sent, if not
// nil, is told when it is on its way for the first time; open says that something was
// sent before that may have done what the release would.
func (t *tenure) persist(bound time.Duration, sent engine.Follower, open bool, fill func(*transport.Call)) error {
	e := t.lock.engine
	began, rest := time.Now(), bound
	var pause engine.Backoff
	for {
		at := e.Attempt()
		fill(&at.Call)
		at.Sent = sent
		sent = nil
		out, err := released(at.RunFor(rest, (*stray)(t)))
		if err != nil || out != reply.Free {
			t.stained.Store(true)
		}
		switch {
		case err == nil && out == reply.NotHeld && !open:
			return redlatch.ErrLost
		case err == nil:
			return nil
		case errors.Is(err, redlatch.ErrUncertain):
			open = true
			t.strays.Add(1)
		case !engine.Passing(err):
			return err
		}
		d := pause.Next()
		if time.Since(began)+d >= bound || !e.Wait(d) {
			return err
		}
		rest = bound - time.Since(began)
	}
}

func released(answer any, err error) (reply.ReleaseOutcome, error) {
	if err != nil {
		return 0, err
	}
	return reply.Released(answer)
}

// discard frees the lock in the background if this owner has it.
func (t *tenure) discard() { t.settle(nil) }

func (t *tenure) settle(at *engine.Attempt) {
	t.doubt(at, nil, func(c *transport.Call) { t.lock.proto.Release(c, &t.acq, 0) })
}

// arrive brings the count to the number of holds in the background, for a tenure
// whose turn the caller has, and gives the turn back when it is done. It does not
// free the lock: whoever gives the last hold up does, and would be told that the
// lock was lost.
func (t *tenure) arrive(at *engine.Attempt) {
	t.settleDoubt(&engine.Doubt{Attempt: at, Done: t.give, Moot: t.isFreed, Release: func(c *transport.Call) {
		holds, lease := t.owed()
		t.arrivals.Add(1) // after the count: who has left before it sees this
		acq := protocol.Acquisition{Owner: t.acq.Owner, Lease: lease.Milliseconds()}
		t.lock.proto.Release(c, &acq, max(holds, 1))
	}})
}

func (t *tenure) doubt(at *engine.Attempt, done func(), release func(*transport.Call)) {
	t.settleDoubt(&engine.Doubt{Attempt: at, Done: done, Release: release})
}

func (t *tenure) settleDoubt(d *engine.Doubt) {
	t.stained.Store(true)
	d.Name, d.Owner, d.Lease = t.lock.name, t.owner.String(), t.lease
	t.lock.engine.Settle(d)
}

// stray is a tenure with a release that nobody waits for any more.
type stray tenure

// Haunt is part of engine.Ghost: it finds out when the release cannot run any more.
func (s *stray) Haunt(at *engine.Attempt, _ any, err error) {
	t := (*tenure)(s)
	if !errors.Is(err, redlatch.ErrUncertain) {
		at.Free()
		t.strays.Add(-1)
		return
	}
	e := t.lock.engine
	if !e.Go(func() {
		if e.Fence(at) {
			t.strays.Add(-1)
		}
		at.Free()
	}) {
		at.Free()
	}
}
