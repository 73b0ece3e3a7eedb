package limits_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
)

func TestLeaseRoundsToMilliseconds(t *testing.T) {
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

func TestInvalidLeaseIsRejected(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                    "lease 0s must be at least 1ms",
		60:                   "60ns must be at least 1ms: add a unit, as in 60*time.Second",
		time.Millisecond - 1: "lease 999.999µs must be at least 1ms",
		-time.Second:         "lease -1s must be at least 1ms",
		math.MinInt64:        "must be at least 1ms",
		limits.Max + 1:       "is more than 100 years",
		math.MaxInt64:        "is more than 100 years",
	} {
		_, err := limits.Lease(d)
		require.ErrorIs(t, err, limits.ErrInvalid, d)
		require.ErrorContains(t, err, want)
	}
}

func TestLongWaitScoresStayExact(t *testing.T) {
	t.Parallel()
	endOf2100 := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	score := endOf2100 + 300*limits.Max.Milliseconds()
	require.Less(t, score, int64(1e15), "15 digits")
	require.Less(t, score, int64(1<<53))
}

func TestOverlongTimesAreCapped(t *testing.T) {
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

func TestInvalidNameErrorStatesReason(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a b", "{", "замок", "\x00", "\n", "\uFFFD", strings.Repeat("n", 10_000)} {
		require.NoError(t, limits.Name(name), "%q", name)
	}
	for name, want := range map[string]string{
		"":                                "the lock's name is empty",
		"\xff":                            `"\xff" is not valid UTF-8`,
		"a\xc3":                           `"a\xc3" is not valid UTF-8`,
		"\xed\xa0\x80":                    `"\xed\xa0\x80" is not valid UTF-8`, // half a surrogate pair
		strings.Repeat("n", 100) + "\xc0": `"` + strings.Repeat("n", 64) + `"... is not valid UTF-8`,
	} {
		err := limits.Name(name)
		require.ErrorIs(t, err, limits.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestExcerptIsAlwaysShort(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"`, limits.Quote(strings.Repeat("x", 64)))
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"...`, limits.Quote(strings.Repeat("x", 65)))
	require.Equal(t, `"`+strings.Repeat("x", 63)+`"...`, limits.Quote(strings.Repeat("x", 63)+"éé"), "no character is cut in two")
	require.Equal(t, `"`+strings.Repeat(`\x80`, 60)+`"...`, limits.Quote(strings.Repeat("\x80", 100)), "no search for a beginning without end")
}

func TestClusterNamesInDifferentSlotsAreRejected(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "{tag}x", "a{b}c", "{a}{b}", "a}b{c}", "замок", "x{{y}}"} {
		checkClusterName(t, name, true)
	}
	for _, name := range []string{"a{b", "{}x", "x{}y{z}", "a}b", "{}", "}{", "a}b{", "{", "}"} {
		checkClusterName(t, name, false)
	}
}

func checkClusterName(t *testing.T, name string, wantOK bool) {
	t.Helper()
	require.NoError(t, limits.Name(name), name)
	err := limits.OneSlot(name)
	require.Equal(t, wantOK, keysStayTogether(name), name)
	if wantOK {
		require.NoError(t, err, name)
		require.Equal(t, limits.HashSlot(name), limits.HashSlot(protocol.LatchKey(name, "deadbeef")), name)
		return
	}
	require.ErrorIs(t, err, limits.ErrInvalid, name)
	require.ErrorContains(t, err, limits.Quote(name))
}

// keysStayTogether checks every derived name; limits.OneSlot checks one.
func keysStayTogether(name string) bool {
	for _, derived := range []string{
		codec.LockChannel(name), protocol.OwnerChannel(name, "u:1"), codec.QueueKey(name), codec.TimeoutKey(name), protocol.LatchKey(name, "00ff"),
	} {
		if limits.HashTag(derived) != limits.HashTag(name) {
			return false
		}
	}
	return true
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"", "a", "{a}b", "a{", "}a", "{}", "a}b{c}", "\xff{", "\xf1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		wellFormed := name != "" && utf8.ValidString(name)
		require.Equal(t, wellFormed, limits.Name(name) == nil)
		if wellFormed {
			require.Equal(t, keysStayTogether(name), limits.OneSlot(name) == nil)
		}
		require.Less(t, limits.HashSlot(name), 16384)
	})
}
