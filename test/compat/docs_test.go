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

// The table must list the releases of Makefile, scripts/compat.sh and the tests.
func TestCompatibilityPageListsEachRelease(t *testing.T) {
	t.Parallel()
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
	require.Subset(t, table(t, "docs/compatibility.md", "What differs between releases"), run)
}
