package rreadwritelock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A hash of another program, which counts for a thousand users, is no lock: to look at it must not
// stop the server.
func TestAHashOfCountersIsNotReadAsHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rw := newLock(t, s, redlatch.WithCommandTimeout(time.Minute))
	args := []any{rw.Name()}
	for i := range 1000 {
		args = append(args, "user:"+strconv.Itoa(i), 1_700_000_000_000+i)
	}
	s.Do(t, "HSET", args...)
	began := time.Now()
	_, err := rw.Read().IsLocked(within(t))
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	require.Less(t, time.Since(began), soon)
}
