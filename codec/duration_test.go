package codec

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeasesAndWaitsAreWholeMilliseconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		time.Millisecond:          1,
		1999 * time.Microsecond:   1,
		2*time.Millisecond - 1:    1,
		30 * time.Second:          30_000,
		time.Minute + time.Second: 61_000,
		MaxLease:                  3_153_600_000_000,
	} {
		lease, err := LeaseMillis(d)
		require.NoError(t, err)
		require.Equal(t, want, lease, d)
		wait, err := WaitMillis(d)
		require.NoError(t, err)
		require.Equal(t, want, wait, d)
	}
}

func TestLeasesAndWaitsThatCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                    "0s is less than a millisecond",
		time.Millisecond - 1: "999.999µs is less than a millisecond",
		-time.Second:         "-1s is less than a millisecond",
		math.MinInt64:        "is less than a millisecond",
		MaxLease + 1:         "is more than 100 years",
		math.MaxInt64:        "is more than 100 years",
	} {
		_, err := LeaseMillis(d)
		require.ErrorIs(t, err, ErrBadLease, d)
		require.ErrorContains(t, err, want)
		_, err = WaitMillis(d)
		require.ErrorIs(t, err, ErrBadWait, d)
		require.NotErrorIs(t, err, ErrBadLease, d)
		require.ErrorContains(t, err, want)
	}
}

func TestScoresOfLongWaitsStayExact(t *testing.T) {
	t.Parallel()
	endOf2100 := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	score := endOf2100 + 300*MaxLease.Milliseconds()
	require.Less(t, score, int64(1e15), "15 digits")
	require.Less(t, score, int64(1<<53))
}

func TestParseMessageIsStrict(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]int64{
		MessageUnlock: 0, MessageReadUnlock: 1, "-1": -1, "9223372036854775807": math.MaxInt64,
	} {
		got, err := ParseMessage(payload)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, payload := range []string{"", " 0", "0 ", "+1", "00", "-0", "0x1", "1e3", "1.0", "null", "9223372036854775808"} {
		_, err := ParseMessage(payload)
		require.ErrorIs(t, err, ErrBadMessage, payload)
	}
}

func TestPrefixMapperMapsThereAndBack(t *testing.T) {
	t.Parallel()
	mapper := PrefixMapper("app:")
	require.Equal(t, "app:orders", mapper.Map("orders"))
	require.Equal(t, "orders", mapper.Unmap("app:orders"))
	require.Equal(t, "app:orders", mapper.Unmap(mapper.Map("app:orders")), "the prefix is taken off once")
	require.Equal(t, "others:orders", mapper.Unmap("others:orders"))
	require.Equal(t, "redisson_lock__channel:{app:orders}", LockChannel(mapper.Map("orders")))
	require.Equal(t, "orders", PrefixMapper("").Map("orders"))
}
