package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreBrokenBetweenWordsAlone(t *testing.T) {
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

// What a message quotes may be the answer of a server.
func TestMessagesHaveNoControlSequences(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Messagef(&out, "the server says %s", "NOPERM \x1b]0;title\a\x1b[2J\u202e\nno")
	require.Equal(t, "redlatch: the server says NOPERM \ufffd]0;title\ufffd\ufffd[2J\ufffd\nno\n", out.String())
}
