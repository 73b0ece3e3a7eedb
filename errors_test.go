package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/transport"
)

func TestLockErrorIncludesOperationLockAndReason(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]redlatch.LockError{
		`lock "orders:42": redlatch: lock not acquired`: {
			Op: "lock", Name: "orders:42", Err: redlatch.ErrNotAcquired,
		},
		`try-lock "a\nb": redlatch: lock not acquired (the lease of its holder had 29.5s left)`: {
			Op: "try-lock", Name: "a\nb", Err: redlatch.ErrNotAcquired, TTL: 29500*time.Millisecond + 1,
		},
		`unlock "` + strings.Repeat("x", 64) + `"...: redlatch: lock lost`: {
			Op: "unlock", Name: strings.Repeat("x", 1000), Err: redlatch.ErrLost,
		},
		`try-lock "held": redlatch: lock not acquired (the lease of 01000000-0000-0000-0000-000000000000:7 had 2s left)`: {
			Op: "try-lock", Name: "held", Err: redlatch.ErrNotAcquired, TTL: 2 * time.Second,
			Holder: codec.NewOwner(uuid.UUID{1}, 7),
		},
		`try-lock "kept": redlatch: lock not acquired (held by 01000000-0000-0000-0000-000000000000:7)`: {
			Op: "try-lock", Name: "kept", Err: redlatch.ErrNotAcquired, Holder: codec.NewOwner(uuid.UUID{1}, 7),
		},
		`lock "stays": redlatch: lock not acquired (the key has no TTL: it is not a lock, or its lease never expires)`: {
			Op: "lock", Name: "stays", Err: redlatch.ErrNotAcquired, TTL: redlatch.NoTTL,
		},
		`lock "stays": redlatch: lock not acquired (the lease of 01000000-0000-0000-0000-000000000000:7 never expires)`: {
			Op: "lock", Name: "stays", Err: redlatch.ErrNotAcquired, TTL: redlatch.NoTTL,
			Holder: codec.NewOwner(uuid.UUID{1}, 7),
		},
		`lock "j": first; second`: {
			Op: "lock", Name: "j", Err: errors.Join(errors.New("first"), errors.New("second")),
		},
	} {
		require.EqualError(t, &e, want)
	}
}

func TestLockErrorSupportsIsAndAs(t *testing.T) {
	t.Parallel()
	owner := codec.NewOwner(uuid.New(), 3)
	inner := &transport.ServerError{Text: "NOPERM this user has no permissions"}
	err := fmt.Errorf("billing: %w", &redlatch.LockError{
		Op: "lock", Name: "orders:42", Owner: owner, TTL: time.Second,
		Err: fmt.Errorf("%w: %w", redlatch.ErrNotAcquired, inner),
	})
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NotErrorIs(t, err, redlatch.ErrLost)
	var le *redlatch.LockError
	require.ErrorAs(t, err, &le)
	require.Equal(t, owner, le.Owner)
	require.Equal(t, time.Second, le.TTL)
	var se *transport.ServerError
	require.ErrorAs(t, err, &se)
	require.Equal(t, "NOPERM", se.Code())
}

// Each error must match exactly one outcome.
func TestOutcomesAreDistinct(t *testing.T) {
	t.Parallel()
	all := []error{
		redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrClosed,
		redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrWrongType,
		redlatch.ErrInvalid, redlatch.ErrMaxHold, redlatch.ErrHandedOver, redlatch.ErrReentered, redlatch.ErrNotReplicated,
	}
	texts := map[string]bool{}
	for i, a := range all {
		texts[a.Error()] = true
		require.True(t, strings.HasPrefix(a.Error(), "redlatch: "), "%v", a)
		for j, b := range all {
			require.Equal(t, i == j, errors.Is(a, b), "%v is %v", a, b)
		}
	}
	require.Len(t, texts, len(all))
}

// both joins errors as calls do.
func both(a, b error) error {
	return &redlatch.LockError{Op: "lock", Name: "orders:42", Err: fmt.Errorf("%w: %w", a, b)}
}

// hooksOf returns the hooks of a client with the observer.
func hooksOf(t *testing.T, o redlatch.Observer) engine.Hooks {
	t.Helper()
	client, err := redlatch.New(func(context.Context) (redis.Conn, error) { return nil, errors.New("no server") }, redlatch.WithObserver(o))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return engine.EngineOf(client).Hooks
}

func TestNotAcquiredIsNotFailure(t *testing.T) {
	t.Parallel()
	var got redlatch.NotAcquired
	hooks := hooksOf(t, redlatch.Observer{NotAcquired: func(_ context.Context, e redlatch.NotAcquired) { got = e }})
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
		{both(redlatch.ErrNotReplicated, canceled), 1, "failed"},
		{both(redlatch.ErrNotReplicated, deadline), 1, "failed"},
		{both(redlatch.LossTaken, canceled), 1, "failed"},
		{both(redlatch.ErrUncertain, both(redlatch.ErrClosed, canceled)), 1, "failed"},
		{redlatch.LossTaken, 0, "failed"},
		{redlatch.ErrInvalid, 0, "failed"},
	} {
		hooks.NotAcquired(t.Context(), engine.Event{Err: c.err, Number: c.attempts})
		require.Equal(t, c.outcome, got.Outcome, "%v", c.err)
	}
}

func TestErrorTypes(t *testing.T) {
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
		"not_open":       rlatch.ErrNotOpen,
		"not_replicated": redlatch.ErrNotReplicated,
		"not_notified":   both(redlatch.ErrNotNotified, &transport.ServerError{Text: "ERR ACL failure in script"}),
		"wrong_type":     redlatch.ErrWrongType,
		"invalid":        redlatch.ErrInvalid,
		"server":         &transport.ServerError{Text: "OOM command not allowed"},
		"_OTHER":         errors.New("of another package"),
	} {
		require.Equal(t, want, redlatch.ErrorType(err))
	}
}

func TestHoldEndReportsReason(t *testing.T) {
	t.Parallel()
	var got redlatch.Ended
	hooks := hooksOf(t, redlatch.Observer{Ended: func(_ context.Context, e redlatch.Ended) { got = e }})
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
		hooks.Ended(t.Context(), engine.Event{Err: c.err})
		require.Equal(t, c.end, got.End)
		require.Equal(t, c.reason, got.LossReason)
	}
}
