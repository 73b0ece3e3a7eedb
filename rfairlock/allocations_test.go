package rfairlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

// allocationsOfAPair are the hold, its owner's text, which is boxed, and the time for each of the two
// scripts.
const allocationsOfAPair = 5

// Not parallel, since it counts allocations.
func TestPairStaysWithinItsAllocations(t *testing.T) {
	testlevel.NoRace(t, "it takes allocations, too")
	client := connect(t, redistest.Shared(t).URL())
	l := rfairlock.New(client, redistest.Key(t))
	ctx := t.Context()
	n := testing.AllocsPerRun(2000, func() {
		hold, err := l.Lock(ctx)
		if err == nil {
			err = hold.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Logf("%.0f allocations", n)
	require.LessOrEqual(t, n, float64(allocationsOfAPair))
}
