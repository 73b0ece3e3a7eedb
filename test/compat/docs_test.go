package compat

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout(t), path))
	require.NoError(t, err)
	return string(text)
}

// table returns the first column of the first Markdown table below a heading, without its header.
func table(t *testing.T, path, heading string) []string {
	t.Helper()
	_, section, found := strings.Cut(contents(t, path), "\n## "+heading+"\n")
	require.True(t, found, "%s: missing section %q", path, heading)
	var column []string
	for line := range strings.Lines(section) {
		cell, isRow := strings.CutPrefix(line, "| ")
		if isRow {
			first, _, _ := strings.Cut(cell, " | ")
			column = append(column, first)
		} else if len(column) > 0 && !strings.HasPrefix(line, "|") {
			break
		}
	}
	require.Greater(t, len(column), 1, "%s, section %q: missing table", path, heading)
	return column[1:]
}

// Both tables must list the releases of Makefile, scripts/compat.sh and the tests.
func TestCompatibilityPageListsEachRelease(t *testing.T) {
	t.Parallel()
	const path = "docs/compatibility.md"
	run := strings.Fields(defaultReleases)
	for file, lists := range map[string]*regexp.Regexp{
		"Makefile":          regexp.MustCompile(`(?m)^(?:COMPAT|RELEASES)\s*\?=(.*)$`),
		"scripts/compat.sh": regexp.MustCompile(`(?m)^defaults="(.*)"$`),
	} {
		found := lists.FindAllStringSubmatch(contents(t, file), -1)
		require.NotEmpty(t, found, "%s: missing list of releases", file)
		for _, list := range found {
			run = append(run, strings.Fields(list[1])...)
		}
	}
	require.Contains(t, contents(t, path), (&verdicts{}).markdown(), "table header differs from verdicts.markdown")
	results := table(t, path, "Results")
	require.Subset(t, results, run)
	require.Equal(t, results, table(t, path, "What differs between releases"))
}
