package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands of docs/assurance.md run tests that are there, and its planted bugs are in the
// lists.
func TestWhatAssuranceNamesCanBeRun(t *testing.T) {
	t.Parallel()
	page := sources(t, ".md")[filepath.Join("docs", "assurance.md")]
	tests, lists := sources(t, "_test.go"), sources(t, ".txt")
	commands := regexp.MustCompile("`go test (?:-race )?\\./(\\S+) -run (\\w+)`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(commands), 5, "the check itself is broken")
	for _, c := range commands {
		found := false
		for path, text := range tests {
			found = found || filepath.ToSlash(filepath.Dir(path)) == c[1] && strings.Contains(text, "func "+c[2]+"(")
		}
		require.True(t, found, "%s has no %s", c[1], c[2])
	}
	bugs := regexp.MustCompile("\\| `([a-z]+)/([^`]+)` \\|").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(bugs), 5, "the check itself is broken")
	for _, b := range bugs {
		list := lists[filepath.Join("test", "mutants", b[1]+".txt")]
		if !strings.Contains(list, "mutant "+b[2]+"\n") {
			t.Errorf("there is no planted bug %s/%s", b[1], b[2])
		}
	}
}
