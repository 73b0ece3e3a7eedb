package acl

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternsTakePrefixesAsTheyAre(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"":         "~redisson_unlock_latch:{*",
		"app:":     "~redisson_unlock_latch:{app:*",
		"{app}:":   "~redisson_unlock_latch:{app}:*",
		`a*b?c[d]`: `~redisson_unlock_latch:{a\*b\?c\[d\]*`,
	} {
		require.Equal(t, want, latches.Word(prefix))
	}
	require.Equal(t, "redisson_unlock_latch:{app:x}:", latches.Example("app:x"))
	require.Equal(t, "redlatch:label:app:x", labels.Example("app:x"))
}

func TestCanHoldRejectsTextThatEndsARule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "app:", "{app}:", `a*b?c[d]\`, "ørder-日本:", "a+b@c~d&e#f"} {
		require.True(t, CanHold(text), "%q", text)
	}
	for _, text := range []string{"a b +@all ~*", "a\nb", "a\tb", "a\x00b", `a"b`, "a'b", "a\u00a0b", "a\u202eb", "\x1b[2J", "a\xffb"} {
		require.False(t, CanHold(text), "%q", text)
	}
}

// Names that have a brace before the prefix need a pattern of their own, where there is
// such a thing.
func TestPatternsForBracesAreThereWhereTheyMeanSomething(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]bool{"app:": true, "": false, "{app}:": false, "a{": false} {
		require.Equal(t, want, slices.Contains(Of(Plain).Words(prefix), "~{"+prefix+"*"), prefix)
	}
}
