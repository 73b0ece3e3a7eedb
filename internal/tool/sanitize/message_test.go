package sanitize

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cutting out the middle of a quoted name can move its end out of the quotes.
func TestMessageDoesNotShortenCommands(t *testing.T) {
	t.Parallel()
	const attack = ";touch${IFS}/tmp/file;#"
	for _, blank := range []string{"", " "} {
		whole := 0
		for n := range 200 {
			name := strings.Repeat("A"+blank, n) + "'" + strings.Repeat("B"+blank, 10*n) + attack
			command := "`redlatch evict " + Quote(name) + " " + Quote(name) + "`"
			for _, text := range []string{command, strings.Repeat("x ", 500) + command, command + strings.Repeat(" `y", 500)} {
				got := Message("use " + text + " to evict it")
				require.LessOrEqual(t, len(got), MaxMessage+len("..."))
				rest := strings.ReplaceAll(got, command, "")
				require.NotContains(t, rest, "touch")
				if rest != got {
					whole++
				}
				require.True(t, strings.HasPrefix(got, "use ") && strings.HasSuffix(got, " to evict it"), got)
			}
		}
		require.NotZero(t, whole)
	}
}
