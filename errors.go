package redlatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// The outcomes of calls, told apart with errors.Is. Most arrive wrapped in a
// [*LockError] that names the lock.
var (
	// ErrNotAcquired says that another owner holds the lock: TryLock found it held,
	// or the time of WithWait ran out. When the context ended the wait, the context's
	// error is joined with it. With a fair lock it may also be that the lock is free,
	// but others are queued before the caller. With the context of a hold it says
	// that another caller with that context is inside.
	ErrNotAcquired = engine.ErrNotAcquired

	// ErrNotHeld says that the hold was given up before, by Unlock or LetExpire.
	ErrNotHeld = engine.ErrNotHeld

	// ErrLost says that the hold ended without being given up: its lease ran
	// out, Redis could not be reached in time to renew it, or the server no
	// longer has it, because another client released it or the key was deleted. [Loss]
	// says which.
	ErrLost = engine.ErrLost

	// ErrMaxHold says that the hold reached the time of WithMaxHold. It is not
	// renewed any more, and the lock is free when its lease is over, or when it
	// is unlocked.
	ErrMaxHold = engine.ErrMaxHold

	// ErrHandedOver says that HandOver gave the hold to another caller.
	ErrHandedOver = engine.ErrHandedOver

	// ErrReentered says that a hold cannot be handed over or left to its lease,
	// because the lock was entered again and other holds count on it.
	ErrReentered = engine.ErrReentered

	// ErrClosed says that the client was closed.
	ErrClosed = engine.ErrClosed

	// ErrUncertain says that a command was sent and its reply lost, so that it
	// may have taken effect. What it may have left is cleared up in the
	// background, but for owners that were given with WithOwner.
	ErrUncertain = engine.ErrUncertain

	// ErrNotSent says that a command certainly had no effect, because Redis
	// could not be reached.
	ErrNotSent = engine.ErrNotSent

	// ErrWrongType says that the key is not one of this kind of lock: it is a lock of another
	// kind, which the error around it names; a key of another type; or a hash without any
	// field that an owner may have, of another program, such as the error around it names.
	ErrWrongType = engine.ErrWrongType

	// ErrNotNotified says that Unlock or ForceUnlock freed the lock, and that the server did
	// not let the user publish that. Waiters ask for the lock when they next poll, which is a
	// poll cap away at most. The error names the right that the user lacks. Redis since version
	// 7 and Valkey find that before a client takes its first lock of a kind: Lock and TryLock
	// return the *transport.ServerError then.
	ErrNotNotified = engine.ErrNotNotified

	// ErrNotReplicated says that Lock or TryLock got the lock, and gave it back because
	// too few replicas had it in time: see [WithReplicaSync]. When the context ended the
	// wait, or the client was closed, that error is joined with it.
	ErrNotReplicated = engine.ErrNotReplicated

	// ErrInvalid says that an argument cannot be used, and why: a name that no lock can
	// have, because it is empty, not valid UTF-8, or does not work in a cluster; a lease or
	// a wait that is too short or too long; options that contradict each other; a text that
	// is no owner, or the zero Owner. Nothing was sent.
	ErrInvalid = limits.ErrInvalid
)

// LockError is an error about one lock. It is returned by the methods of Lock
// and Hold; use errors.As to read it and errors.Is for what it wraps.
type LockError struct {
	// Op is the operation that failed, such as "lock" or "unlock".
	Op string
	// Name is the lock's name, as the caller gave it.
	Name string
	// Owner is the owner on whose behalf the operation ran, if there was one.
	Owner Owner
	// Holder is the owner that held the lock when it was last asked for, the zero
	// Owner if not known, or if the lock was free: a free fair lock is refused to
	// all but the first in its queue; admin.Inspect tells which waiter that is, and
	// whether it is subscribed.
	Holder Owner
	// TTL is how long the present holder's lease had left when it was last asked for:
	// NoTTL, which is negative, when it never ends or the key is a hash of others without
	// a time to live, and 0 if not known, as always for a fair lock's that never ends.
	TTL time.Duration
	// Err is what went wrong.
	Err error
}

// Error names the operation, the lock and what went wrong.
func (e *LockError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	b.WriteString(" ")
	b.WriteString(limits.Quote(e.Name))
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	}
	holder := "its holder"
	if !e.Holder.IsZero() {
		holder = e.Holder.String()
	}
	switch {
	case e.TTL == NoTTL && e.Holder.IsZero():
		b.WriteString(" (the key has no time to live: it is no lock, or its lease never ends)")
	case e.TTL == NoTTL:
		b.WriteString(" (the lease of " + holder + " never ends)")
	case e.TTL > 0:
		b.WriteString(" (the lease of " + holder + " had " + limits.Show(e.TTL, time.Millisecond) + " left)")
	case !e.Holder.IsZero():
		b.WriteString(" (held by " + holder + ")")
	}
	return b.String()
}

// Unwrap returns what went wrong.
func (e *LockError) Unwrap() error { return e.Err }

// Loss is why a hold was lost. It is an error that wraps [ErrLost]; find it with errors.As in
// what Hold.Err, Unlock, HandOver and Lock return, in the cause of the hold's contexts, and in
// the Err of [Ended] and [Released]:
//
//	var why redlatch.Loss
//	if errors.As(err, &why) {
//		log.Print(string(why)) // such as "the lease was not renewed in time"
//	}
//
// or ask for one with errors.Is. As a string it is a part of a sentence, for logs and metrics.
type Loss string

// The reasons of a loss. What is known is what the client has seen: the first two are times
// that it has counted itself; with the others the server has answered that the owner does not
// hold the lock.
const (
	// LossNotRenewed says that no renewal was acknowledged in time: Redis could not be
	// reached or was too slow, or the process or its machine stood still. If the server
	// refused the last renewal, as with NOREPLICAS or MISCONF, the error also wraps that
	// *transport.ServerError.
	LossNotRenewed Loss = "the lease was not renewed in time"

	// LossLeaseOver says that the lease of WithLease, which is not renewed, was over.
	LossLeaseOver Loss = "its own lease was over"

	// LossTaken says that the server no longer has the lock, although the connection to it
	// was not lost since it last said that it has: another client released it, by force
	// (ForceUnlock), as its owner, or by a permit's id, or its key was deleted, as DEL, FLUSHALL
	// and an eviction do.
	LossTaken Loss = "it was released by another client, or its key was deleted"

	// LossForgotten says that the server no longer has the lock, and that since it last
	// said that it has, a connection was lost or another server became the master: it was
	// restarted without its data, or a replica that never had the lock took over. That
	// the lock was taken or deleted in that time cannot be told from this. A transport
	// that does not tell of lost connections gives LossTaken instead.
	LossForgotten Loss = "the server had forgotten it when the connection was back"
)

// Error says that the lock was lost, and why.
func (l Loss) Error() string { return ErrLost.Error() + ": " + string(l) }

// Unwrap returns ErrLost.
func (l Loss) Unwrap() error { return ErrLost }

// losses are what holds end with.
var losses = engine.Losses{
	NotRenewed: LossNotRenewed, LeaseOver: LossLeaseOver, Taken: LossTaken, Forgotten: LossForgotten,
}

// ErrorType returns a short name for what err is, of which there are few: for labels of metrics,
// which must not have the text of an error. It is "" for nil, and of the others "closed",
// "lost", "max_hold", "handed_over", "not_held", "reentered", "uncertain", "not_sent",
// "not_acquired", "not_replicated", "not_notified", "wrong_type", "invalid", "server" for what the
// server answered otherwise, or "_OTHER". Of an error that wraps several of them it is the first one.
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

// errorTypes are the names of errors, those that say more first.
var errorTypes = []struct {
	err  error
	name string
}{
	{ErrClosed, "closed"}, {ErrLost, "lost"}, {ErrMaxHold, "max_hold"}, {ErrHandedOver, "handed_over"},
	{ErrNotReplicated, "not_replicated"}, {ErrNotNotified, "not_notified"}, {ErrUncertain, "uncertain"}, {ErrNotSent, "not_sent"},
	{ErrReentered, "reentered"}, {ErrWrongType, "wrong_type"}, {ErrInvalid, "invalid"},
	{ErrNotHeld, "not_held"}, {ErrNotAcquired, "not_acquired"},
}

// Outcome returns in one word how the call went:
//
//   - "refused": another owner has the lock, or the time of WithWait was over, or as many
//     callers wait as may. That is an answer and no failure.
//   - "canceled": the caller's context was canceled, or was over before the call began, or
//     its deadline ended the wait for a lock that another owner had.
//   - "failed": anything else; [ErrorType] says what. Examples are a deadline that ended the wait
//     for a Redis that did not answer, and a wait for replicas that ended early for any reason.
func (e NotAcquired) Outcome() string {
	late := errors.Is(e.Err, context.DeadlineExceeded)
	switch {
	case errors.Is(e.Err, ErrClosed), errors.Is(e.Err, ErrNotReplicated), errors.Is(e.Err, ErrLost):
		return "failed"
	case errors.Is(e.Err, context.Canceled), late && errors.Is(e.Err, ErrNotAcquired),
		late && e.Attempts == 0 && errors.Is(e.Err, ErrNotSent):
		return "canceled"
	case errors.Is(e.Err, ErrNotAcquired):
		return "refused"
	}
	return "failed"
}

// End returns in one word why the hold is over: "unlocked" for one that was given up, also by
// LetExpire, "lost", "max_hold", "handed_over" or "closed".
func (e Ended) End() string {
	if e.Err == nil {
		return "unlocked"
	}
	return ErrorType(e.Err)
}

// LossReason returns "late" for a hold that was lost because its lease was over, "gone" for one
// that the server no longer had, and "" for one that was not lost.
func (e Ended) LossReason() string {
	switch {
	case !errors.Is(e.Err, ErrLost):
		return ""
	case errors.Is(e.Err, LossNotRenewed), errors.Is(e.Err, LossLeaseOver):
		return "late"
	}
	return "gone"
}
