package redlatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// Errors for errors.Is. Most are wrapped in a [*LockError].
var (
	// ErrNotAcquired means that another owner holds the lock or is queued first, and that the wait
	// ended or the call does not wait. If the context ended the wait, its error is joined. If the
	// context is that of a hold, it can also mean that another caller with that context has an
	// inner hold.
	ErrNotAcquired = engine.ErrNotAcquired

	// ErrNotHeld means that Unlock or LetExpire already ended the hold, or that the owner or the permit
	// that was passed in does not hold anything.
	ErrNotHeld = engine.ErrNotHeld

	// ErrLost means that the hold ended without being released: its lease expired, it could not be
	// renewed in time, or the server no longer has it. It is also a [Loss] with the reason.
	ErrLost = engine.ErrLost

	// ErrMaxHold means that the hold reached the limit of WithMaxHold. It is no longer renewed; the
	// lock becomes free when it is unlocked or its lease expires.
	ErrMaxHold = engine.ErrMaxHold

	// ErrHandedOver means that HandOver passed the lock on to another caller.
	ErrHandedOver = engine.ErrHandedOver

	// ErrReentered means that a hold cannot be handed over or left to expire because inner holds
	// depend on it.
	ErrReentered = engine.ErrReentered

	// ErrClosed means that the client was closed.
	ErrClosed = engine.ErrClosed

	// ErrUncertain means that a command was sent but its reply was lost: it may have taken
	// effect. The client cleans up in the background, except for owners passed to WithOwner or Resume.
	ErrUncertain = engine.ErrUncertain

	// ErrNotSent means that a command had no effect because Redis could not be reached.
	ErrNotSent = engine.ErrNotSent

	// ErrWrongType means that the key holds a lock of another kind, which the wrapping error
	// names, or a value that is not a lock.
	ErrWrongType = engine.ErrWrongType

	// ErrNotNotified means that Unlock or ForceUnlock released the lock but could not notify
	// waiters, which acquire it at their next poll, because the user lacks the permission named by
	// the error. On Redis 7 and later and on Valkey, Lock and TryLock already fail with a
	// *transport.ServerError.
	ErrNotNotified = engine.ErrNotNotified

	// ErrNotReplicated means that Lock or TryLock released the lock again because too few replicas
	// acknowledged it in time; see [WithReplicaSync]. If the context ended or the client was closed,
	// that error is joined.
	ErrNotReplicated = engine.ErrNotReplicated

	// ErrInvalid means that an argument is invalid and nothing was sent: an address; a name that
	// is empty, not UTF-8 or unusable in a cluster; a lease or a wait out of range; mutually
	// exclusive options; a malformed or zero Owner.
	ErrInvalid = limits.ErrInvalid
)

// LockError is an error about one lock. Use errors.As to read it and errors.Is for the wrapped
// error.
type LockError struct {
	// Op is the failed operation, such as "lock" or "unlock".
	Op string
	// Name is the lock's name as the caller passed it.
	Name string
	// Owner is the owner of the operation, if any.
	Owner codec.Owner
	// Holder is the lock's owner at the last attempt, or the zero Owner if it is unknown or the lock
	// was free. A free fair lock can be acquired only by the first waiter in its queue; see
	// admin.Inspect.
	Holder codec.Owner
	// TTL is the holder's remaining lease at the last attempt. It is NoTTL, which is negative, if
	// the key never expires, and 0 if it is unknown.
	TTL time.Duration
	Err error
}

// Error returns the operation, the lock, the cause and, if it is known, the holder.
func (e *LockError) Error() string {
	text := e.Op + " " + limits.Quote(e.Name)
	if e.Err != nil {
		text += ": " + strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	}
	holder := "its holder"
	if !e.Holder.IsZero() {
		holder = e.Holder.String()
	}
	switch {
	case e.TTL == NoTTL && e.Holder.IsZero():
		text += " (the key has no TTL: it is not a lock, or its lease never expires)"
	case e.TTL == NoTTL:
		text += " (the lease of " + holder + " never expires)"
	case e.TTL > 0:
		text += " (the lease of " + holder + " had " + limits.Show(e.TTL, time.Millisecond) + " left)"
	case !e.Holder.IsZero():
		text += " (held by " + holder + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *LockError) Unwrap() error { return e.Err }

// Loss is the reason why a hold was lost, an error that wraps [ErrLost]. Use errors.As on the
// result of Hold.Err, Unlock, HandOver and Lock, the cause of the hold's contexts, and the Err of
// [Ended] and [Released]:
//
//	var why redlatch.Loss
//	if errors.As(err, &why) {
//		log.Print(string(why)) // such as "the lease was not renewed in time"
//	}
type Loss string

// The reasons for a loss. The client detects the first two by its clock. For the others, the server
// replied that the owner does not hold the lock.
const (
	// LossNotRenewed means that no renewal was acknowledged in time because Redis was unreachable or
	// slow, or the process was paused. If the server rejected the last renewal, the error also wraps
	// that *transport.ServerError.
	LossNotRenewed Loss = "the lease was not renewed in time"

	// LossLeaseOver means that the lease set with WithLease, which is not renewed, has expired.
	LossLeaseOver Loss = "its own lease expired"

	// LossTaken means that the server no longer holds the lock for the owner although the connection
	// has been up since the last confirmation: another client released it, or DEL, FLUSHALL or an
	// eviction deleted the key.
	LossTaken Loss = "it was released by another client, or its key was deleted"

	// LossForgotten means that the server no longer has the lock, and that a connection was lost or
	// the master changed since the last confirmation, as after a failover. If the transport does not
	// report lost connections, the reason is LossTaken instead.
	LossForgotten Loss = "the server no longer had it after a reconnect"
)

// Error returns the text of ErrLost with the reason.
func (l Loss) Error() string { return ErrLost.Error() + ": " + string(l) }

// Unwrap returns ErrLost.
func (l Loss) Unwrap() error { return ErrLost }

var losses = engine.Losses{
	NotRenewed: LossNotRenewed, LeaseOver: LossLeaseOver, Taken: LossTaken, Forgotten: LossForgotten,
}

// ErrorType returns a short name for err, for use in metric labels: "" for nil, and otherwise
// "closed", "lost", "max_hold", "handed_over", "not_held", "reentered", "uncertain", "not_sent",
// "not_acquired", "not_open" for a latch, "not_replicated", "not_notified", "wrong_type", "invalid",
// "server" for any other server error, or "_OTHER". If err wraps several errors, the most specific one
// is named.
func ErrorType(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	var server *transport.ServerError
	if errors.As(err, &server) {
		return "server"
	}
	return "_OTHER"
}

// More specific errors come first.
var errorTypes = []struct {
	err  error
	name string
}{
	{ErrClosed, "closed"}, {ErrLost, "lost"}, {ErrMaxHold, "max_hold"}, {ErrHandedOver, "handed_over"},
	{ErrNotReplicated, "not_replicated"}, {ErrNotNotified, "not_notified"}, {ErrUncertain, "uncertain"}, {ErrNotSent, "not_sent"},
	{ErrReentered, "reentered"}, {ErrWrongType, "wrong_type"}, {ErrInvalid, "invalid"},
	{ErrNotHeld, "not_held"}, {ErrNotAcquired, "not_acquired"}, {engine.ErrNotOpen, "not_open"},
}

func outcome(err error, attempts int) string {
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNotReplicated), errors.Is(err, ErrLost):
		return "failed"
	case errors.Is(err, context.Canceled), late && errors.Is(err, ErrNotAcquired),
		late && attempts == 0 && errors.Is(err, ErrNotSent):
		return "canceled"
	case errors.Is(err, ErrNotAcquired):
		return "refused"
	}
	return "failed"
}

func endOf(err error) string {
	if err == nil {
		return "unlocked"
	}
	return ErrorType(err)
}

func lossReason(err error) string {
	switch {
	case !errors.Is(err, ErrLost):
		return ""
	case errors.Is(err, LossNotRenewed), errors.Is(err, LossLeaseOver):
		return "late"
	}
	return "gone"
}
