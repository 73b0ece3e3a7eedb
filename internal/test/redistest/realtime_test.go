package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInRealTimeRepeatsFailuresAfterStallsOnly(t *testing.T) {
	attempts, cleaned := 0, 0
	failing := func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { cleaned++ })
		attempts++
		require.Greater(tb, attempts, 2, "as it should")
		tb.Log("the third one succeeds")
	}
	still := stall
	longest := func(time.Time, time.Time) time.Duration { still += stall; return still - stall }

	require.ErrorContains(t, repeat(t, longest, failing), "as it should", "the machine did not stall")
	assert.Equal(t, 1, cleaned)
	require.NoError(t, repeat(t, longest, failing))
	assert.Equal(t, 3, attempts)
	assert.Equal(t, 3, cleaned)
	require.ErrorContains(t, repeat(t, longest, func(tb testing.TB) { tb.Helper(); tb.Error("never") }), "each time")
}
