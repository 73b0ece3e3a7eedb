package clock

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadlineUsesEarlierClock(t *testing.T) {
	d := Deadline{mono: int64(10 * time.Second), wall: int64(100 * time.Second)}
	cases := []struct {
		name       string
		mono, wall time.Duration
		want       time.Duration
	}{
		{"both agree", 4 * time.Second, 94 * time.Second, 6 * time.Second},
		{"suspended: the monotonic clock stopped", 4 * time.Second, 99 * time.Second, time.Second},
		{"wall clock set back: the monotonic one decides", 9 * time.Second, 40 * time.Second, time.Second},
		{"suspended past the deadline", 4 * time.Second, 130 * time.Second, -30 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, d.remaining(int64(c.mono), int64(c.wall)))
		})
	}
}

func TestDeadlineAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		d := After(now, time.Minute)
		require.Equal(t, time.Minute, d.Remaining(now))
		require.False(t, d.Passed(now.Add(time.Minute-1)))
		require.True(t, d.Passed(now.Add(time.Minute)))
		require.True(t, d.Time().Equal(now.Add(time.Minute)))
	})
}

func TestZeroDeadlineHasPassed(t *testing.T) {
	var a Atomic
	require.True(t, a.Load().IsZero())
	require.True(t, a.Load().Passed(time.Now()))
}

func TestDeadlineNeverOverflows(t *testing.T) {
	now := time.Now()
	require.Positive(t, After(now, math.MaxInt64).Remaining(now))
	require.True(t, After(now, math.MinInt64).Passed(now))
}

func TestAtomicLoadsStoredValue(t *testing.T) {
	d := After(time.Now(), time.Second)
	var a Atomic
	a.Store(d)
	require.Equal(t, d, a.Load())
}
