package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = `# Page

<!-- figures: model -->
| fleet | free |
|---|---|
| all | 12 ms |

*` + "`make model`, commit `6c02d18`, 2026-11-23, two processors" + `.*

After.
`

func TestOriginsOfTablesAreRead(t *testing.T) {
	t.Parallel()
	all, err := origins("docs/page.md", page)
	require.NoError(t, err)
	require.Equal(t, []origin{{
		name: "model", file: "docs/page.md", line: 8, command: "make model", commit: "6c02d18", date: "2026-11-23",
		machine: "two processors",
	}}, all)
}

func TestATableOfFiguresWithoutAnOriginIsAnError(t *testing.T) {
	t.Parallel()
	measured := "| a | b |\n|---|---|\n| 1 ms | 2 ms |\n| 3 ms | 1,200 |\n\nText.\n"
	_, err := origins("docs/page.md", measured)
	require.ErrorContains(t, err, "docs/page.md:1: a table of figures does not say where they come from")
	_, err = origins("docs/page.md", "<!-- figures: x -->\n"+measured)
	require.ErrorContains(t, err, `the figures "x" are not followed by their origin`)
	_, err = origins("docs/page.md", strings.TrimSuffix(measured, "\nText.\n"))
	require.ErrorContains(t, err, "does not say where they come from", "at the end of a page")
	_, err = origins("docs/migration.md", measured)
	require.NoError(t, err)
	_, err = origins("docs/page.md", "| a | b |\n|---|---|\n| waits 1 ms | for 2 ms |\n\nText.\n")
	require.NoError(t, err)
	whole := "*`make loss`, commit `226bb4ca0740-dirty`, 2026-11-22, two processors.*\n\nText.\n\n" + measured
	all, err := origins("docs/page.md", whole)
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestATableIsReplacedByWhatItsCommandPrints(t *testing.T) {
	t.Parallel()
	all, err := origins("docs/page.md", page)
	require.NoError(t, err)
	o := all[0]
	o.commit, o.date = "abcdef0", "2026-12-01"
	text, err := o.replace(page, "log\n| fleet | free |\n|---|---|\n    x_test.go:7: | all | 9 ms |\nok\n")
	require.NoError(t, err)
	require.Equal(t, strings.NewReplacer("12 ms", "9 ms", "6c02d18", "abcdef0", "2026-11-23", "2026-12-01").Replace(page), text)
	_, err = o.replace(page, "no table")
	require.Error(t, err)
}

func TestAFigureIsOutdatedByWhatItsCommandMeasures(t *testing.T) {
	t.Parallel()
	require.Contains(t, origin{command: "make bench-observed"}.measures(), "promredlatch")
	require.NotContains(t, origin{command: "make bench"}.measures(), "promredlatch")
	for _, command := range []string{"make bench", "make stress"} {
		require.Contains(t, origin{command: command}.measures(), "rreadwritelock", command)
	}
}

func TestACommandIsRunAsAReaderWouldRunIt(t *testing.T) {
	t.Parallel()
	out, err := output(`printf '%s\n' COMPAT='$(RELEASES)' "two words"`)
	require.NoError(t, err)
	require.Equal(t, "COMPAT=$(RELEASES)\ntwo words\n", out)
	_, err = output("exit 3")
	require.ErrorContains(t, err, "exit 3: exit status 3")
}
