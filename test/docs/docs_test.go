package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is where the checkout begins, seen from here.
const root = "../.."

// sources returns the text of the repository's files whose names end as given, by their
// paths in it.
func sources(t *testing.T, suffix string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".servers", "bin", "target"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			path, err = filepath.Rel(root, path)
		}
		texts[path] = string(text)
		return err
	})
	require.NoError(t, err)
	return texts
}

func TestEveryTestNamedInTheDocumentsExists(t *testing.T) {
	t.Parallel()
	declared, declaration := map[string]bool{}, regexp.MustCompile(`^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	for _, text := range sources(t, "_test.go") {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "func ") { // the expression alone would take seconds with the race detector
				continue
			}
			if m := declaration.FindStringSubmatch(line); m != nil {
				declared[m[1]] = true
			}
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

// A snippet that is not compiled rots, so each Go block of the documents stands,
// word for word, in an example: in a file of examples or a program to copy. Whole
// programs are those of the quickstart, which scripts/newcomer.sh builds and runs.
func TestEveryGoSnippetOfTheDocumentsIsCompiled(t *testing.T) {
	t.Parallel()
	var examples strings.Builder
	for path, text := range sources(t, ".go") {
		if strings.HasSuffix(path, "example_test.go") || strings.HasPrefix(path, "examples"+string(filepath.Separator)) {
			examples.WriteString(words(text))
			examples.WriteString(" ")
		}
	}
	found := map[string]int{}
	for path, text := range sources(t, ".md") {
		for _, b := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
			found[filepath.ToSlash(path)]++
			if regexp.MustCompile(`(?m)^package `).MatchString(b[1]) {
				require.Equal(t, "docs/quickstart.md", filepath.ToSlash(path), "programs there are not compiled")
				continue
			}
			if !strings.Contains(examples.String(), words(b[1])) {
				t.Errorf("%s: this snippet is in no example:\n%s", path, b[1])
			}
		}
	}
	for _, path := range []string{"README.md", "README.zh-CN.md", "docs/migration.md", "docs/quickstart.md"} {
		require.Positive(t, found[path], "%s has no Go snippet: the check itself is broken", path)
	}
}

// words makes texts comparable whatever their indentation.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// A reader knows at once whether a page is meant for them.
func TestEachPageNamesItsReaders(t *testing.T) {
	t.Parallel()
	found := 0
	for path, text := range sources(t, ".md") {
		if path != "CONTRIBUTING.md" && filepath.ToSlash(filepath.Dir(path)) != "docs" {
			continue
		}
		found++
		_, begin, _ := strings.Cut(text, "\n\n")
		if !strings.HasPrefix(begin, "For ") {
			t.Errorf("%s does not begin with its readers: For …", path)
		}
	}
	require.Greater(t, found, 10, "no pages were found: the check itself is broken")
}

// Longer pages are not read.
func TestPagesStayShort(t *testing.T) {
	t.Parallel()
	texts := sources(t, ".md")
	for path, most := range map[string]int{"README.md": 1600, filepath.Join("docs", "testing.md"): 2000} {
		n := len(strings.Fields(texts[path]))
		require.Positive(t, n, path)
		require.LessOrEqual(t, n, most, path)
	}
}
