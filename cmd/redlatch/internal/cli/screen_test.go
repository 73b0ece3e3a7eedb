package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutCountsColumnsAndNotEscapes(t *testing.T) {
	t.Parallel()
	red := Look{Colours: true}.Paint(Red, "red")
	require.Equal(t, red+" and", Cut(red+" and", 7))
	require.Equal(t, red+" an"+reset, Cut(red+" and", 6))
	require.Equal(t, "█·"+reset, Cut("█·█", 2))
	require.Empty(t, Cut("", 0))
}

func TestLookWithoutColoursIsPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "x", Look{}.Paint(Red, "x"))
	require.Equal(t, "\x1b[32mx\x1b[0m", Look{Colours: true}.Paint(Green, "x"))
	require.Equal(t, "x", Look{Colours: true}.Paint("", "x"))
}

func TestFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.False(t, IsLive(f))
	require.False(t, LookOf(f).Colours)
	s := NewScreen(f)
	s.Draw([]string{"line"})
	s.Close()
}

func TestScreenOverwritesItsLastPicture(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newScreen(&out, func() (int, int) { return 10, 5 })
	require.Equal(t, hideCursor, out.String())
	out.Reset()
	s.Draw([]string{"one", "two"})
	require.Equal(t, "\rone\x1b[K\r\ntwo\x1b[K\r\n\x1b[J", out.String())
	out.Reset()
	s.Draw([]string{"0123456789"})
	require.Equal(t, "\x1b[A\x1b[A\r012345678\x1b[0m\x1b[K\r\n\x1b[J", out.String())
	out.Reset()
	s.Draw(strings.Fields("a b c d e f g"))
	require.Equal(t, 4, strings.Count(out.String(), "\r\n"), "a picture higher than the terminal")
	out.Reset()
	s.Close()
	require.Equal(t, showCursor, out.String())
}
