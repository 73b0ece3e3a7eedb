package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
)

func TestLeasesFitColumn(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		redlatch.NoTTL: "none", 0: "0s", 29840 * time.Millisecond: "29.8s", 59*time.Minute + 59*time.Second: "59m59s",
		99*time.Hour + 59*time.Minute: "99h59m", 100 * time.Hour: "4d", limits.Max: "36500d",
	} {
		require.Equal(t, want, Lease(left))
		require.LessOrEqual(t, len(want), 7)
	}
}

func TestIndentRemovesControlSequences(t *testing.T) {
	t.Parallel()
	require.Equal(t, "  note   cannot count subscribers: NOPERM \ufffd]0;title\ufffd\ufffd[2J\n",
		Indented("note", "cannot count subscribers: NOPERM \x1b]0;title\a\x1b[2J"))
}

// If a command that users paste contained a line break, its first half would run.
func TestIndentKeepsCommandsOnOneLine(t *testing.T) {
	t.Parallel()
	command := "`redlatch evict --all-dead 'a  b'`"
	require.Equal(t, "  left   2 waiters that have no subscriber, for a long time now, are evicted by\n         "+command+" if they are dead\n",
		Indented("left", "2 waiters that have no subscriber, for a long time now, are evicted by "+command+" if they are dead"))
	require.Equal(t, "  note   a ` alone\n", Indented("note", "a `  alone"))
}

func TestDurationsBeyondMaximumAreNamed(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		1500: "1.5s", 292 * 365 * 24 * 3600 * 1000: "2557920h0m0s", 1<<63 - 1: "more than 292 years", 9223372036854: "more than 292 years",
	} {
		require.Equal(t, want, Millis(ms))
	}
	longAgo := int64(-1<<63 + 1)
	require.Equal(t, "more than 292 years ago", Deadline(&longAgo))
}

func TestLinesBreakBetweenWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"short", "short"},
		{"exactly ten", "exactly\n  ten"},
		{"exact ten", "exact ten"},
		{"a  b   c", "a  b   c"},
		{"averylongwordindeed and more", "averylongwordindeed\n  and more"},
		{"one averylongwordindeed", "one\n  averylongwordindeed"},
		{"two\nlines that are long\n", "two\nlines that\n  are long\n"},
		{"µµµµ µµµµµ", "µµµµ µµµµµ"},
	} {
		require.Equal(t, c.want, fold(c.text, 10), c.text)
	}
}

func TestMessagesRemoveControlSequences(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Messagef(&out, "the server says %s", "NOPERM \x1b]0;title\a\x1b[2J\u202e\nno")
	require.Equal(t, "redlatch: the server says NOPERM \ufffd]0;title\ufffd\ufffd[2J\ufffd\nno\n", out.String())
}

func TestUncoloredOutputIsPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "x", Look(false).Paint(Red, "x"))
	require.Equal(t, "\x1b[32mx\x1b[0m", Look(true).Paint(Green, "x"))
	require.Equal(t, "x", Look(true).Paint("", "x"))
}

func TestFileIsNotTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.False(t, bool(LookOf(f)))
}

func TestOnlyYesConfirms(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, " yes \r\n": true, "\n": false, "": false, "n\n": false, "yeah\n": false} {
		var out strings.Builder
		require.Equal(t, want, Confirm(strings.NewReader(answer), &out, "Take it?"), answer)
		require.Equal(t, "Take it? [y/N] ", out.String())
	}
}

func TestPipesAreNotWrapped(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(read.Close(), write.Close())) }()
	long := strings.TrimSpace(strings.Repeat("word ", 40))
	require.Equal(t, "         "+long+"\n", IndentedFor(write, "", long))
	require.Equal(t, Indented("", long), IndentedFor(io.Discard, "", long))
}
