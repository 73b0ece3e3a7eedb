package output

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
