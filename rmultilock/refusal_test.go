package rmultilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rmultilock"
)

// A refusal says that the lease of the member in the way never ends, as that of one lock does.
func TestARefusalTellsALeaseThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := names(t, 2)
	s.Do(t, "HSET", all[1], "a peer:1", 1)
	_, err := rmultilock.New(connect(t, s.URL()), all...).TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	var at *redlatch.LockError
	require.ErrorAs(t, err, &at)
	require.Equal(t, redlatch.NoTTL, at.TTL)
}
