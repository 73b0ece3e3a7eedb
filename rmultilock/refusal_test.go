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

// A member that is a hash of another program is not waited for.
func TestAMemberOfAnotherProgramIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := names(t, 3)
	s.Do(t, "HSET", all[1], "name", "bob")
	l := rmultilock.New(connect(t, s.URL()), all...)
	_, err := l.Lock(within(t))
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	require.ErrorContains(t, err, all[1])
	require.ErrorContains(t, err, `a hash with the field "name", which no owner has`)
	_, err = l.TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	require.Len(t, left(t, s, all), 1)
	s.Do(t, "DEL", all[1])
}
