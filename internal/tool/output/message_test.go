package output

import (
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
