package follow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const owner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"

func TestChannelsNameTheLockAndTheWaiter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders", "orders:42", "a}b", "{eu}orders", "x{y", "a:b:c", "ä ö"} {
		got, called := Parse(codec.LockChannel(name))
		require.Equal(t, name, got)
		require.Empty(t, called)
		got, called = Parse(codec.OwnerChannel(name, owner))
		require.Equal(t, name, got)
		require.Equal(t, owner, called)
		got, called = Parse(codec.ReadWriteChannel(name))
		require.Equal(t, name, got)
		require.Empty(t, called)
	}
	name, called := Parse(codec.LockChannel("{a}"))
	require.Equal(t, "a", name, "they have one channel")
	require.Empty(t, called)
}

// A message that two patterns match would be received twice.
func TestOnePatternMatchesEachChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		names   []string
	}{
		{"orders", []string{"orders"}},
		{"or*ders", []string{"orders", "or*ders"}},
		{"*", []string{"orders", "{eu}orders", "a{b", ""}},
		{"ord*", []string{"orders", "ord{er}s"}},
		{"{eu}*", []string{"{eu}orders", "{eu}"}},
		{"[ab]c", []string{"ac", "bc"}},
		{`a\*b`, []string{"a*b"}},
	} {
		var patterns []string
		for _, f := range families {
			patterns = append(patterns, f.patterns(c.pattern, inspect.IsPattern(c.pattern))...)
		}
		for _, name := range c.names {
			for _, channel := range []string{codec.LockChannel(name), codec.OwnerChannel(name, owner), codec.ReadWriteChannel(name)} {
				n := 0
				for _, p := range patterns {
					if inspect.Match(p)(channel) {
						n++
					}
				}
				require.Equal(t, 1, n, "%s by %v", channel, patterns)
			}
		}
	}
}
