package redlatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

func TestLockErrorNamesOperationLockAndReason(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]redlatch.LockError{
		`lock "orders:42": redlatch: lock not acquired`: {
			Op: "lock", Name: "orders:42", Err: redlatch.ErrNotAcquired,
		},
		`trylock "a\nb": redlatch: lock not acquired (the lease of its holder had 29.5s left)`: {
			Op: "trylock", Name: "a\nb", Err: redlatch.ErrNotAcquired, TTL: 29500*time.Millisecond + 1,
		},
		`unlock "` + strings.Repeat("x", 64) + `"...: redlatch: lock lost`: {
			Op: "unlock", Name: strings.Repeat("x", 1000), Err: redlatch.ErrLost,
		},
		`trylock "held": redlatch: lock not acquired (the lease of 01000000-0000-0000-0000-000000000000:7 had 2s left)`: {
			Op: "trylock", Name: "held", Err: redlatch.ErrNotAcquired, TTL: 2 * time.Second,
			Holder: codec.NewOwner(uuid.UUID{1}, 7),
		},
		`trylock "kept": redlatch: lock not acquired (held by 01000000-0000-0000-0000-000000000000:7)`: {
			Op: "trylock", Name: "kept", Err: redlatch.ErrNotAcquired, Holder: codec.NewOwner(uuid.UUID{1}, 7),
		},
		`lock "stays": redlatch: lock not acquired (the lease of its holder never ends)`: {
			Op: "lock", Name: "stays", Err: redlatch.ErrNotAcquired, TTL: redlatch.NoTTL,
		},
		`lock "j": first; second`: {
			Op: "lock", Name: "j", Err: errors.Join(errors.New("first"), errors.New("second")),
		},
	} {
		require.EqualError(t, &e, want)
	}
}

func TestLockErrorIsReadWithIsAndAs(t *testing.T) {
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

// One thing that went wrong must not pass for another.
func TestOutcomesAreDistinguished(t *testing.T) {
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
