package codec

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestBraceRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, name, inKey string }{
		{"no brace", "myLock", "{myLock}"},
		{"leading", "{tag}x", "{tag}x"},
		{"inner", "a{b}c", "a{b}c"},
		{"two tags", "{a}{b}", "{a}{b}"},
		{"opening only", "a{b", "a{b"},
		{"closing only", "a}b", "{a}b}"},
		{"closing first", "a}b{c}", "a}b{c}"},
		{"empty tag", "{}", "{}"},
		{"empty tag in front", "{}x", "{}x"},
		{"last character", "x{", "x{"},
		{"unicode", "замок-錠", "{замок-錠}"},
		{"unicode in a tag", "{замок}-錠", "{замок}-錠"},
		{"a full-width brace is none", "a\uFF5Bb", "{a\uFF5Bb}"},
		{"colons", "a:b:", "{a:b:}"},
		{"empty", "", "{}"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "redisson_lock__channel:"+c.inKey, LockChannel(c.name))
			require.Equal(t, "redisson_lock__channel:"+c.inKey+":u:7", OwnerChannel(c.name, "u:7"))
			require.Equal(t, "redisson_lock_queue:"+c.inKey, QueueKey(c.name))
			require.Equal(t, "redisson_lock_timeout:"+c.inKey, TimeoutKey(c.name))
			require.Equal(t, "redisson_unlock_latch:"+c.inKey+":deadbeef", LatchKey(c.name, "deadbeef"))
		})
	}
}

// Not parallel: AllocsPerRun counts the whole process.
func TestLockChannelCostsOneAllocation(t *testing.T) {
	var channel string
	require.InDelta(t, 1, testing.AllocsPerRun(100, func() { channel = LockChannel("orders:42") }), 0)
	require.NotEmpty(t, channel)
}

func TestValidateNameSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a b", "{", "замок", "\x00", "\n", "\uFFFD", strings.Repeat("n", 10_000)} {
		require.NoError(t, ValidateName(name), "%q", name)
	}
	for name, want := range map[string]string{
		"":                                "the name is empty",
		"\xff":                            `"\xff" is not valid UTF-8`,
		"a\xc3":                           `"a\xc3" is not valid UTF-8`,
		"\xed\xa0\x80":                    `"\xed\xa0\x80" is not valid UTF-8`, // half a surrogate pair
		strings.Repeat("n", 100) + "\xc0": `"` + strings.Repeat("n", 64) + `"... is not valid UTF-8`,
	} {
		err := ValidateName(name)
		require.ErrorIs(t, err, ErrBadName)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, ValidateClusterName(name), ErrBadName)
	}
}

func TestAnExcerptIsShortWhateverItQuotes(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"`, Quote(strings.Repeat("x", 64)))
	require.Equal(t, `"`+strings.Repeat("x", 64)+`"...`, Quote(strings.Repeat("x", 65)))
	require.Equal(t, `"`+strings.Repeat("x", 63)+`"...`, Quote(strings.Repeat("x", 63)+"éé"), "no character is cut in two")
	require.Equal(t, `"`+strings.Repeat(`\x80`, 60)+`"...`, Quote(strings.Repeat("\x80", 100)), "no search for a beginning without end")
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
	require.NoError(t, ValidateName(name), name)
	err := ValidateClusterName(name)
	require.Equal(t, wantOK, keysStayTogether(name), name)
	if wantOK {
		require.NoError(t, err, name)
		require.Equal(t, Slot(name), Slot(LatchKey(name, "deadbeef")), name)
		return
	}
	require.ErrorIs(t, err, ErrBadName, name)
	require.ErrorContains(t, err, Quote(name))
}

// keysStayTogether looks at every derived name, where ValidateClusterName
// looks at one.
func keysStayTogether(name string) bool {
	for _, derived := range []string{
		LockChannel(name), OwnerChannel(name, clientText+":1"), QueueKey(name), TimeoutKey(name), LatchKey(name, "00ff"),
	} {
		if hashTag(derived) != hashTag(name) {
			return false
		}
	}
	return true
}

func TestSlotIsRedissOwn(t *testing.T) {
	t.Parallel()
	require.Equal(t, uint16(0x31C3), crc16("123456789"))
	for key, slot := range map[string]int{
		"":                             0,
		"123456789":                    12739,
		"foo":                          12182,
		"{foo}.x":                      12182,
		"x{foo}{bar}":                  12182,
		"redisson_lock__channel:{foo}": 12182,
		"bar":                          5061,
		"hello":                        866,
		"{}foo":                        9500,
		"foo{}{bar}":                   8363,
		"foo{{bar}}zap":                4015,
	} {
		require.Equal(t, slot, Slot(key), key)
	}
}

func FuzzBraceRule(f *testing.F) {
	for _, seed := range []string{"", "a", "{a}b", "a{", "}a", "{}", "a}b{c}", "\xff{"} {
		f.Add(seed, clientText+":1")
	}
	f.Fuzz(func(t *testing.T, name, suffix string) {
		channel := LockChannel(name)
		for prefix, derived := range map[string]string{
			"redisson_lock__channel:": channel,
			"redisson_lock_queue:":    QueueKey(name),
			"redisson_lock_timeout:":  TimeoutKey(name),
		} {
			rest, ok := strings.CutPrefix(derived, prefix)
			require.True(t, ok)
			if strings.Contains(name, "{") {
				require.Equal(t, name, rest)
			} else {
				require.Equal(t, "{"+name+"}", rest)
			}
		}
		require.Equal(t, channel+":"+suffix, OwnerChannel(name, suffix))
		require.True(t, strings.HasSuffix(LatchKey(name, suffix), ":"+suffix))

		wellFormed := name != "" && utf8.ValidString(name)
		require.Equal(t, wellFormed, ValidateName(name) == nil)
		require.Equal(t, wellFormed && keysStayTogether(name), ValidateClusterName(name) == nil)
		require.Less(t, Slot(name), slots)
		if ValidateClusterName(name) == nil {
			require.Equal(t, Slot(name), Slot(channel))
		}
	})
}
