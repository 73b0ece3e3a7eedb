package redlatch

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/transport"
)

// ErrorType returns a short name for what err is, of which there are few: for labels of metrics,
// which must not have the text of an error. It is "" for nil, and of the others "closed",
// "lost", "max_hold", "handed_over", "not_held", "reentered", "uncertain", "not_sent",
// "not_acquired", "not_replicated", "wrong_type", "invalid", "server" for what the server
// answered otherwise, or "_OTHER". Of an error that wraps several of them it is the first one.
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
	{ErrNotReplicated, "not_replicated"}, {ErrUncertain, "uncertain"}, {ErrNotSent, "not_sent"},
	{ErrReentered, "reentered"}, {ErrWrongType, "wrong_type"}, {ErrInvalid, "invalid"},
	{ErrNotHeld, "not_held"}, {ErrNotAcquired, "not_acquired"},
}

// Outcome returns in one word how the call went:
//
//   - "refused": another owner has the lock, or the time of WithWait was over, or as many
//     callers wait as may. That is an answer and no failure.
//   - "canceled": the caller's context was canceled, or was over before the call began, or
//     its deadline ended the wait for a lock that another owner had.
//   - "failed": anything else; [ErrorType] says what. A deadline that ended the wait for a Redis
//     that did not answer is one.
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
