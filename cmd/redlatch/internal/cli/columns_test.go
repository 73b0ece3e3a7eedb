package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
)

func TestLeasesFitTheirColumn(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		redlatch.NoTTL: "none", 0: "0s", 29840 * time.Millisecond: "29.8s", 59*time.Minute + 59*time.Second: "59m59s",
		99*time.Hour + 59*time.Minute: "99h59m", 100 * time.Hour: "4d", limits.Max: "36500d",
	} {
		require.Equal(t, want, Lease(left))
		require.LessOrEqual(t, len(want), 7)
	}
}

// A note may quote the answer of a server.
func TestIndentedTextHasNoControlSequences(t *testing.T) {
	t.Parallel()
	require.Equal(t, "  note   listeners cannot be counted: NOPERM \ufffd]0;title\ufffd\ufffd[2J\n",
		Indented("note", "listeners cannot be counted: NOPERM \x1b]0;title\a\x1b[2J"))
}

// A command is shown to be pasted: a break within it would run its first half.
func TestIndentedKeepsCommandsOnOneLine(t *testing.T) {
	t.Parallel()
	command := "`redlatch evict --all-dead 'a  b'`"
	require.Equal(t, "  left   2 waiters that have no subscriber, for a long time now, are evicted by\n         "+command+" if they are dead\n",
		Indented("left", "2 waiters that have no subscriber, for a long time now, are evicted by "+command+" if they are dead"))
	require.Equal(t, "  note   a ` alone\n", Indented("note", "a `  alone"))
}

// Servers and Java know leases that no duration can hold.
func TestTimesBeyondTheLongestDurationAreNamed(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		1500: "1.5s", 292 * 365 * 24 * 3600 * 1000: "2557920h0m0s", 1<<63 - 1: "more than 292 years", 9223372036854: "more than 292 years",
	} {
		require.Equal(t, want, Millis(ms))
	}
	longAgo := int64(-1<<63 + 1)
	require.Equal(t, "more than 292 years ago", Deadline(&longAgo))
}
