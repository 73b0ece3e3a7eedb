package limits_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
)

func TestNameSaysWhatIsWrong(t *testing.T) {
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

func TestAnExcerptIsShortWhateverItQuotes(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"`, limits.Quote(strings.Repeat("x", 64)))
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"...`, limits.Quote(strings.Repeat("x", 65)))
	require.Equal(t, `"`+strings.Repeat("x", 63)+`"...`, limits.Quote(strings.Repeat("x", 63)+"éé"), "no character is cut in two")
	require.Equal(t, `"`+strings.Repeat(`\x80`, 60)+`"...`, limits.Quote(strings.Repeat("\x80", 100)), "no search for a beginning without end")
}

func TestClusterNamesWhoseKeysComeApartAreRefused(t *testing.T) {
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
		require.Equal(t, limits.HashSlot(name), limits.HashSlot(codec.LatchKey(name, "deadbeef")), name)
		return
	}
	require.ErrorIs(t, err, limits.ErrInvalid, name)
	require.ErrorContains(t, err, limits.Quote(name))
}

// keysStayTogether checks every derived name; limits.OneSlot checks one.
func keysStayTogether(name string) bool {
	for _, derived := range []string{
		codec.LockChannel(name), codec.OwnerChannel(name, "u:1"), codec.QueueKey(name), codec.TimeoutKey(name), codec.LatchKey(name, "00ff"),
	} {
		if limits.HashTag(derived) != limits.HashTag(name) {
			return false
		}
	}
	return true
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"", "a", "{a}b", "a{", "}a", "{}", "a}b{c}", "\xff{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		wellFormed := name != "" && utf8.ValidString(name)
		require.Equal(t, wellFormed, limits.Name(name) == nil)
		require.Equal(t, wellFormed && keysStayTogether(name), limits.OneSlot(name) == nil)
		require.Less(t, limits.HashSlot(name), 16384)
	})
}
