package codec

import (
	"strings"
	"testing"

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
		{"full-width brace", "a\uFF5Bb", "{a\uFF5Bb}"},
		{"colons", "a:b:", "{a:b:}"},
		{"empty", "", "{}"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "redisson_lock__channel:"+c.inKey, LockChannel(c.name))
			require.Equal(t, "redisson_lock_queue:"+c.inKey, QueueKey(c.name))
			require.Equal(t, "redisson_lock_timeout:"+c.inKey, TimeoutKey(c.name))
		})
	}
}

// Not parallel: AllocsPerRun counts the whole process.
func TestLockChannelAllocatesOnce(t *testing.T) {
	var channel string
	require.InDelta(t, 1, testing.AllocsPerRun(100, func() { channel = LockChannel("orders:42") }), 0)
	require.NotEmpty(t, channel)
}

func FuzzBraceRule(f *testing.F) {
	for _, seed := range []string{"", "a", "{a}b", "a{", "}a", "{}", "a}b{c}", "\xff{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for prefix, derived := range map[string]string{
			"redisson_lock__channel:": LockChannel(name),
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
	})
}
