package redlatch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources returns the text of the repository's files whose names end as given.
func sources(t *testing.T, suffix string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "target"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	require.NoError(t, err)
	return texts
}

func TestEveryTestNamedInTheDocumentsExists(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, text := range sources(t, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`).FindAllStringSubmatch(text, -1) {
			declared[m[1]] = true
		}
	}
	require.Greater(t, len(declared), 50, "the tests were not found: the check itself is broken")
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*)`")
	found := 0
	for path, text := range sources(t, ".md") {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			found++
			if !declared[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
	require.Positive(t, found, "no document names a test: the check itself is broken")
}

// A snippet that is not compiled rots, so each Go block of the README stands,
// word for word, in an example file.
func TestEveryGoSnippetOfTheReadmeIsCompiled(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var examples strings.Builder
	for _, text := range sources(t, "example_test.go") {
		examples.WriteString(words(text))
		examples.WriteString(" ")
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks, "the README has no Go snippet")
	for _, b := range blocks {
		require.Contains(t, examples.String(), words(b[1]), "this snippet of the README stands in no example")
	}
}

// words makes texts comparable whatever their indentation.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
