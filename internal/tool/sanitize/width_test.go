package sanitize

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWidthMatchesTerminal(t *testing.T) {
	t.Parallel()
	for text, width := range map[string]int{
		"": 0, "orders:42": 9, "日本語ロック": 12, "잠금": 4, "锁🔒": 4, "é": 1, "e\u0301": 1, "ｗｉｄｅ": 8, "👩‍👩‍👧": 2,
	} {
		require.Equal(t, width, Width(text), text)
		require.Equal(t, 20, Width(Pad(text, 20)), text)
		require.Equal(t, text, Pad(text, 0))
		require.Equal(t, text, Truncate(text, width))
		for columns := 2; columns < width; columns++ {
			require.LessOrEqual(t, Width(Truncate(text, columns)), columns, text)
		}
		for columns := range width + 1 {
			begin, rest := Cut(text, columns)
			require.Equal(t, text, begin+rest)
			require.LessOrEqual(t, Width(begin), columns)
			require.GreaterOrEqual(t, Width(begin), columns-1, "a wide character does not fit in one column")
		}
	}
	require.Equal(t, "日本..", Truncate("日本語ロック", 7))
}
