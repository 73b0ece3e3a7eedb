package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/transport"
)

// both joins errors as those of calls are joined.
func both(a, b error) error {
	return &redlatch.LockError{Op: "lock", Name: "orders:42", Err: fmt.Errorf("%w: %w", a, b)}
}

func TestARefusalIsAnOutcomeAndNoFailure(t *testing.T) {
	t.Parallel()
	deadline, canceled := context.DeadlineExceeded, context.Canceled
	for _, c := range []struct {
		err      error
		attempts int
		outcome  string
	}{
		{redlatch.ErrNotAcquired, 1, "refused"},
		{both(redlatch.ErrNotAcquired, errors.New("as many callers wait")), 1, "refused"},
		{both(redlatch.ErrNotAcquired, deadline), 2, "canceled"},
		{both(redlatch.ErrNotAcquired, canceled), 2, "canceled"},
		{both(redlatch.ErrNotSent, deadline), 0, "canceled"},
		{both(redlatch.ErrUncertain, canceled), 1, "canceled"},
		{both(redlatch.ErrNotSent, deadline), 3, "failed"},
		{both(redlatch.ErrUncertain, deadline), 1, "failed"},
		{redlatch.ErrNotSent, 1, "failed"},
		{redlatch.ErrNotHeld, 0, "failed"},
		{both(redlatch.ErrNotAcquired, redlatch.ErrClosed), 1, "failed"},
		{redlatch.ErrNotReplicated, 1, "failed"},
		{redlatch.LossTaken, 0, "failed"},
		{redlatch.ErrInvalid, 0, "failed"},
	} {
		require.Equal(t, c.outcome, redlatch.NotAcquired{Err: c.err, Attempts: c.attempts}.Outcome(), "%v", c.err)
	}
}

func TestErrorsHaveFewTypes(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"":               nil,
		"closed":         both(redlatch.ErrNotSent, redlatch.ErrClosed),
		"lost":           redlatch.LossForgotten,
		"max_hold":       redlatch.ErrMaxHold,
		"handed_over":    redlatch.ErrHandedOver,
		"not_held":       redlatch.ErrNotHeld,
		"reentered":      redlatch.ErrReentered,
		"uncertain":      both(redlatch.ErrUncertain, context.DeadlineExceeded),
		"not_sent":       redlatch.ErrNotSent,
		"not_acquired":   redlatch.ErrNotAcquired,
		"not_replicated": redlatch.ErrNotReplicated,
		"wrong_type":     redlatch.ErrWrongType,
		"invalid":        redlatch.ErrInvalid,
		"server":         &transport.ServerError{Text: "OOM command not allowed"},
		"_OTHER":         errors.New("of another package"),
	} {
		require.Equal(t, want, redlatch.ErrorType(err))
	}
}

func TestAnEndSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err         error
		end, reason string
	}{
		{nil, "unlocked", ""},
		{redlatch.LossNotRenewed, "lost", "late"},
		{redlatch.LossLeaseOver, "lost", "late"},
		{redlatch.LossTaken, "lost", "gone"},
		{redlatch.LossForgotten, "lost", "gone"},
		{redlatch.ErrMaxHold, "max_hold", ""},
		{redlatch.ErrHandedOver, "handed_over", ""},
		{redlatch.ErrClosed, "closed", ""},
	} {
		e := redlatch.Ended{Err: c.err}
		require.Equal(t, c.end, e.End())
		require.Equal(t, c.reason, e.LossReason())
	}
}
