package rlatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A server without memory refuses what may need some. To count down needs none.
func TestALatchCountsDownOnAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := newLatch(t, s)
	set(t, l, 2)
	came := await(within(t), l)
	listening(t, s, l, 1)
	s.Do(t, "CONFIG", "SET", "maxmemory", 1)
	countDown(t, l)
	require.EqualValues(t, 1, count(t, l))
	countDown(t, l)
	opens(t, came)
	countDown(t, l)
	require.EqualValues(t, 0, s.Do(t, "EXISTS", l.Name()))
}
