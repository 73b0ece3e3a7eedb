package gocronredlatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATickCountsForThePeriodNextToIt(t *testing.T) {
	t.Parallel()
	hour := time.Date(2026, 11, 25, 18, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Duration // after the hour
		want time.Duration // how long the mark stays, 0: the tick is skipped
	}{
		{0, 30 * time.Minute},
		{time.Minute, 29 * time.Minute},
		{-time.Minute, 31 * time.Minute},
		{20 * time.Minute, 10 * time.Minute},
		{-20 * time.Minute, 50 * time.Minute},
		{20*time.Minute + 1, 0},
		{30 * time.Minute, 0},
		{-20*time.Minute - 1, 0},
	} {
		l, err := NewLocker(nil, LockerConfig{Period: time.Hour})
		require.NoError(t, err)
		l.now = func() time.Time { return hour.Add(c.at) }
		got, err := l.mark()
		require.Equal(t, c.want, got, c.at)
		if c.want == 0 {
			require.ErrorIs(t, err, ErrBetween)
			continue
		}
		require.NoError(t, err)
	}
}
