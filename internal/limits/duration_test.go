package limits_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/limits"
)

func TestLeasesAreWholeMilliseconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		time.Millisecond:          1,
		1999 * time.Microsecond:   1,
		2*time.Millisecond - 1:    1,
		30 * time.Second:          30_000,
		time.Minute + time.Second: 61_000,
		limits.Max:                3_153_600_000_000,
	} {
		lease, err := limits.Lease(d)
		require.NoError(t, err)
		require.Equal(t, want, lease, d)
	}
}

func TestLeasesThatCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                    "0s is less than a millisecond",
		60:                   "60ns is less than a millisecond: write a unit, as in 60*time.Second",
		time.Millisecond - 1: "999.999µs is less than a millisecond",
		-time.Second:         "-1s is less than a millisecond",
		math.MinInt64:        "is less than a millisecond",
		limits.Max + 1:       "is more than 100 years",
		math.MaxInt64:        "is more than 100 years",
	} {
		_, err := limits.Lease(d)
		require.ErrorIs(t, err, limits.ErrInvalid, d)
		require.ErrorContains(t, err, want)
	}
}

func TestScoresOfLongWaitsStayExact(t *testing.T) {
	t.Parallel()
	endOf2100 := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	score := endOf2100 + 300*limits.Max.Milliseconds()
	require.Less(t, score, int64(1e15), "15 digits")
	require.Less(t, score, int64(1<<53))
}

func TestTimesTooLongForADurationBecomeTheLongest(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]time.Duration{
		-1: -time.Millisecond, 1500: 1500 * time.Millisecond, math.MaxInt64: math.MaxInt64, math.MinInt64: math.MinInt64,
		9223372036854: 9223372036854 * time.Millisecond, 9223372036855: math.MaxInt64,
	} {
		require.Equal(t, want, limits.FromMillis(ms), ms)
	}
	require.Equal(t, "more than 292 years", limits.Show(math.MaxInt64, time.Second))
	require.Equal(t, "more than 292 years", limits.Show(9223372036854*time.Millisecond, time.Second))
	require.Equal(t, "2s", limits.Show(1500*time.Millisecond, time.Second))
}
