//go:build !race

// The race detector allocates, too.

package work_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

// maxAllocations is what a lock and an unlock of a free lock may allocate. It is a
// count, so it is the same on any machine, however busy: lower it when the code does.
const maxAllocations = 3

func TestPairAllocatesNoMoreThanItDid(t *testing.T) {
	s := startServer(t)
	c, err := contest.Find("redlatch")
	require.NoError(t, err)
	l, err := c.Open(t.Context(), contest.Settings{Addr: s.Addr()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	key := l.Key("pair")
	pair := func() {
		held, err := key(t.Context())
		if err == nil {
			err = held.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
	}
	// The average is cut to a whole number: what the background does now and then
	// is not counted.
	allocations := testing.AllocsPerRun(1000, pair)
	t.Logf("%v allocations", allocations)
	assert.LessOrEqual(t, allocations, float64(maxAllocations))
}
