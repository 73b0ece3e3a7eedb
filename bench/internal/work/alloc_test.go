//go:build !race

// The race detector allocates.

package work_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
)

// maxAllocations bounds Lock and Unlock of a free lock. It does not depend on the machine: lower it with the
// code.
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
	// AllocsPerRun rounds down, which excludes occasional background work.
	allocations := testing.AllocsPerRun(1000, pair)
	t.Logf("%v allocations", allocations)
	assert.LessOrEqual(t, allocations, float64(maxAllocations))
}
