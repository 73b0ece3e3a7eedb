package redlatch

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

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
