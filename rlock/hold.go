package rlock

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/watchdog"
)

// Hold is a lock that was acquired, until it is given up or lost. All methods
// are safe for concurrent use, by any goroutine.
type Hold struct {
	lock  *Lock
	owner codec.Owner
	acq   protocol.Acquisition
	lease watchdog.Lease
	ended atomic.Pointer[ending] // nil while live

	giveUp sync.Once // Unlock or LetExpire, whichever comes first
	result error     // of giveUp

	// mu guards contexts and pruned. It is not held while contexts are ended.
	mu       sync.Mutex
	contexts []*holdContext
	pruned   int
}

// ending is why a hold is over.
type ending struct{ cause error }

var (
	endLost   = &ending{redlatch.ErrLost}
	endClosed = &ending{redlatch.ErrClosed}
	endGiven  = &ending{redlatch.ErrNotHeld}
)

func newHold(l *Lock, set *settings) *Hold {
	h := &Hold{lock: l, owner: l.engine.NextOwner()}
	h.acq = protocol.Acquisition{Owner: h.owner.String(), Lease: set.leaseMS}
	h.lease = watchdog.Lease{
		Key:    l.proto.Key(),
		Owner:  h.acq.Owner,
		TTL:    set.lease,
		TTLArg: set.leaseMS,
		Fixed:  set.fixed,
		Holder: (*watched)(h),
	}
	return h
}

// Name returns the lock's name.
func (h *Hold) Name() string { return h.lock.name }

// Owner returns the owner under which the lock is held, as others see it on the
// server.
func (h *Hold) Owner() codec.Owner { return h.owner }

// Err returns nil while the lock is held, and afterwards why not: ErrLost,
// ErrNotHeld after Unlock or LetExpire, or ErrClosed. It asks the clocks and not
// the server, so it costs nothing and is right at the first instruction after
// the machine was suspended.
func (h *Hold) Err() error {
	if end := h.ended.Load(); end != nil {
		return end.cause
	}
	if h.lease.Deadline().Passed(time.Now()) {
		h.lose()
		return h.ended.Load().cause
	}
	return nil
}

// Remaining returns how long the hold lasts if it is not renewed any more, less
// the loss margin; 0 when it is over.
func (h *Hold) Remaining() time.Duration {
	if h.Err() != nil {
		return 0
	}
	return max(0, h.lease.Deadline().Remaining(time.Now()))
}

// Unlock frees the lock and wakes a waiter. It needs no context and works when
// every context has ended: it takes one command timeout at most, less when less
// is left of the lease. The hold's contexts end, with cause ErrNotHeld, before
// anything is sent. Later calls do nothing and return the first one's result.
//
// It returns nil when the lock was held until now and is free. ErrLost: the hold
// was lost before, together with ErrWrongType when something else has taken its
// key. ErrUncertain or ErrNotSent: Redis did not answer in time; the
// release goes on in the background until the lease is over. ErrClosed: the
// client was closed, and the lock is left to its lease. It sends one EVALSHA.
func (h *Hold) Unlock() error {
	h.giveUp.Do(func() { h.result = h.lock.wrap("unlock", h.owner, h.unlock()) })
	return h.result
}

// LetExpire ends the hold without freeing the lock: it is not renewed any more
// and frees itself when its lease is over. A job that must run at most once per
// period takes a lease of the period and ends with LetExpire; Unlock does
// nothing then. It returns ErrNotHeld after Unlock, ErrLost when the hold was
// lost before, and sends nothing.
func (h *Hold) LetExpire() error {
	err := redlatch.ErrNotHeld
	h.giveUp.Do(func() {
		h.lock.engine.Watchdog.Remove(&h.lease)
		err = h.finish()
		h.result = h.lock.wrap("let-expire", h.owner, err)
	})
	return h.lock.wrap("let-expire", h.owner, err)
}

// finish ends a live hold because its holder gives it up. It returns why it had
// ended before, if it had.
func (h *Hold) finish() error {
	if err := h.Err(); err != nil {
		return err
	}
	if !h.end(endGiven) {
		return h.ended.Load().cause
	}
	return nil
}

// unlock is the first Unlock. The order is watchdog, life, server: a renewal
// that ran after the release would report a loss.
func (h *Hold) unlock() error {
	e := h.lock.engine
	e.Join()
	defer e.Leave()
	e.Watchdog.Remove(&h.lease)
	bound := min(e.Command, h.lease.Deadline().Remaining(time.Now()))
	if err := h.finish(); err != nil {
		return err
	}
	err := h.release(bound)
	if core.Passing(err) || errors.Is(err, redlatch.ErrUncertain) {
		h.discard()
	}
	if err = core.Explain(err); errors.Is(err, redlatch.ErrWrongType) {
		return fmt.Errorf("%w: %w", redlatch.ErrLost, err) // something else took its key
	}
	return err
}

// release sends the release until the server answers, for bound at most.
// Repeating it is safe: it names the count to arrive at.
func (h *Hold) release(bound time.Duration) error {
	e := h.lock.engine
	began := time.Now()
	var pause core.Backoff
	var sentBefore bool
	for {
		out, err := h.releaseOnce(bound - time.Since(began))
		switch {
		case err == nil && out == codec.NotHeld && !sentBefore:
			return redlatch.ErrLost
		case err == nil:
			return nil
		case errors.Is(err, redlatch.ErrUncertain):
			sentBefore = true
		case !core.Passing(err):
			return err
		}
		d := pause.Next()
		if time.Since(began)+d >= bound || !e.Wait(d) {
			return err
		}
	}
}

func (h *Hold) releaseOnce(bound time.Duration) (codec.ReleaseOutcome, error) {
	at := h.lock.engine.Attempt()
	h.lock.proto.Release(&at.Call, &h.acq, 0)
	reply, err := at.RunFor(bound)
	if err != nil {
		return 0, err
	}
	return codec.Released(reply)
}

// lose ends a hold whose lease is over, and frees what may be left of it on the
// server: a renewal whose reply was lost may have prolonged it.
func (h *Hold) lose() {
	h.lock.engine.Watchdog.Remove(&h.lease)
	if h.end(endLost) {
		h.discard()
	}
}

// watched is a hold as the watchdog sees it.
type watched Hold

// LeaseLost is part of watchdog.Holder.
func (w *watched) LeaseLost(cause error) {
	h := (*Hold)(w)
	if errors.Is(cause, redlatch.ErrClosed) {
		h.end(endClosed)
		return
	}
	h.lose()
}
