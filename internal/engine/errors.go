package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// Errors that package redlatch exports.
var (
	ErrNotAcquired = errors.New("redlatch: lock not acquired")
	ErrNotHeld     = errors.New("redlatch: lock not held")
	ErrLost        = errors.New("redlatch: lock lost")
	ErrMaxHold     = errors.New("redlatch: lock held for its maximum time")
	ErrHandedOver  = errors.New("redlatch: lock handed over")
	ErrReentered   = errors.New("redlatch: lock entered more than once")
	ErrWrongType   = errors.New("redlatch: wrong kind of key")
	ErrNotQueued   = errors.New("redlatch: owner not in the queue")
	ErrWaiterAlive = errors.New("redlatch: waiter is alive")
	ErrNotCounted  = errors.New("redlatch: cannot count subscribers")
	ErrNotOpen     = errors.New("redlatch: latch not open")

	ErrNotNotified   = errors.New("redlatch: lock released, but its waiters were not notified and will find it free at their next poll")
	ErrNotReplicated = errors.New("redlatch: too few replicas have the lock")

	ErrClosed    = transport.ErrClosed
	ErrUncertain = transport.ErrUncertain
	ErrNotSent   = transport.ErrNotSent
)

// Losses contains the possible reasons for a loss, which wrap ErrLost.
type Losses struct {
	NotRenewed error // not renewed in time
	LeaseOver  error // a fixed lease expired
	Taken      error // the owner does not hold the lock
	Forgotten  error // the same, after a lost connection or a change of master
}

// refused lists the codes of temporary errors with which the server rejects a call before running it.
var refused = []string{"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "FAILOVER", "MISCONF", "OOM"}

// Passing reports whether err means that the call did not run and may succeed later.
func Passing(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, transport.ErrNotSent) && !errors.Is(err, transport.ErrClosed) {
		return true
	}
	var se *transport.ServerError
	if !errors.As(err, &se) {
		return false
	}
	for _, code := range refused {
		if se.Code() == code {
			return true
		}
	}
	// Before version 7, Redis returns these errors from a script when it first writes.
	return builtin.IsFull(se) || transport.IsCode(se, "READONLY") || transport.IsCode(se, "MISCONF") || transport.IsCode(se, "OOM")
}

// Halfway reports whether err comes from a script that may have changed something before it failed.
func Halfway(err error) bool {
	var se *transport.ServerError
	return errors.As(err, &se) && !Passing(err) && !transport.IsCode(err, "WRONGTYPE") && !isGuarded(err)
}

// Explain wraps WRONGTYPE in ErrWrongType.
func Explain(err error) error {
	if transport.IsCode(err, "WRONGTYPE") && !errors.Is(err, ErrWrongType) {
		return fmt.Errorf("%w: %w", ErrWrongType, err)
	}
	return err
}

var keyKinds = map[string]struct{ text, usedBy string }{
	"lock":       {"a plain, fair or fenced lock", "plain fair fenced fair-fenced"},
	"read/write": {"a read/write lock", "read write"},
	"number":     {"a semaphore or a count-down latch", "permits counter latch"},
}

// ExplainKey is like [Explain], but for a call about a lock's key. It also names the wrong key's actual kind in the
// error.
func (e *Engine) ExplainKey(ctx context.Context, kind, key string, err error) error {
	if err = Explain(err); !errors.Is(err, ErrWrongType) || e.KindOf == nil {
		return err
	}
	at := e.Attempt()
	e.KindOf(&at.Call, key)
	answer, failed := at.Run(ctx, nil)
	text, _ := answer.([]byte)
	is, known := keyKinds[string(text)]
	if failed != nil || !known || slices.Contains(strings.Fields(is.usedBy), kind) {
		return err
	}
	var said *transport.ServerError
	if errors.As(err, &said) {
		return fmt.Errorf("%w: it is %s (%w)", ErrWrongType, is.text, said)
	}
	return fmt.Errorf("%w: it is %s", err, is.text)
}

// Foreign returns the error for a key that is another program's hash, because it contains field.
func Foreign(field string) error {
	return fmt.Errorf("%w: a hash with the field %s, which is not an owner", ErrWrongType, limits.Quote(field))
}

// ErrWaitOver is the cause of a context that was ended by a wait limit.
var ErrWaitOver = errors.New("wait time exceeded")

var ours = []error{
	ErrNotAcquired, ErrNotHeld, ErrLost, ErrMaxHold, ErrHandedOver, ErrReentered,
	ErrWrongType, ErrNotQueued, ErrWaiterAlive, ErrNotCounted, ErrNotOpen, ErrNotNotified, ErrNotReplicated, ErrClosed, ErrUncertain, ErrNotSent,
}

// EndOf returns why ctx ended: its error, with its cause if that differs. A cause that is one of our errors is included
// as text only, because it says nothing about the current call.
func EndOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	if errors.Is(cause, ErrWaitOver) {
		return cause
	}
	for _, own := range ours {
		if errors.Is(cause, own) {
			return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // in words only
		}
	}
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// WithEnd adds the context's error, if any, to err, unless err is nil or already includes it.
func WithEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(context.Cause(ctx), ErrWaitOver) {
		return err
	}
	return fmt.Errorf("%w: %w", err, EndOf(ctx))
}

// Backoff returns the pauses between retries.
type Backoff = clock.Backoff

// Retry calls do while it returns a [Passing] error, for up to one command timeout or until ctx ends or the client
// closes. It returns the last error with a reason.
func (e *Engine) Retry(ctx context.Context, do func() error) error {
	return e.RetrySince(ctx, time.Now(), do)
}

// RetrySince is like Retry, but for a call that began earlier.
func (e *Engine) RetrySince(ctx context.Context, began time.Time, do func() error) error {
	var pause Backoff
	var reason error
	for {
		err := Reason(ctx, reason, do())
		reason = err
		if !Passing(err) || ctx.Err() != nil || e.IsClosing() {
			return err
		}
		left := e.Command - time.Since(began)
		if left <= 0 || !e.Sleep(ctx, min(left, pause.Next())) {
			return notSentSince(began, err)
		}
	}
}

// Reason returns err, or the earlier error if err says only that time ran out before the call was sent.
func Reason(ctx context.Context, earlier, err error) error {
	switch {
	case earlier == nil || !errors.Is(err, ErrNotSent):
		return err
	case errors.Is(err, errNotYet):
		return earlier
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, ErrWaitOver)):
		return WithEnd(ctx, earlier)
	}
	return err
}

// notSentSince returns err, the last error from several attempts. If err says only that time ran out, it adds the total
// time.
func notSentSince(began time.Time, err error) error {
	if !errors.Is(err, errNotYet) {
		return err
	}
	return fmt.Errorf("%w: %w within %v", ErrNotSent, errNotYet, time.Since(began).Round(time.Millisecond))
}

// Persist calls try, with the remaining time, until it succeeds, fails permanently, or bound has passed. open reports
// whether an attempt before the last one may have run; the error is then never ErrNotSent. Callers that may run while
// the client is closing must have joined the engine.
func (e *Engine) Persist(bound time.Duration, try func(rest time.Duration) error) (open bool, err error) {
	began, rest := time.Now(), bound
	var pause Backoff
	var doubt error
	for {
		err = try(rest)
		switch {
		case err == nil:
			return open, nil
		case errors.Is(err, ErrUncertain):
			open, doubt = true, err
		case open && errors.Is(err, ErrNotSent):
			err = doubt
		case !Passing(err):
			return open, err
		}
		d := pause.Next()
		if time.Since(began)+d >= bound || !e.Wait(d) {
			return open, notSentSince(began, err)
		}
		rest = bound - time.Since(began)
	}
}
