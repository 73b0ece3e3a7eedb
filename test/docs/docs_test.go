// Package docs checks that links in the documentation resolve, that the tests and identifiers it mentions exist, that
// Go snippets are part of examples, and that each user scenario has a test.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// sources returns the contents of the repository's files with the suffix, by path.
func sources(t *testing.T, suffix string) map[string]string {
	t.Helper()
	all, err := everyText()
	require.NoError(t, err)
	texts := map[string]string{}
	for path, text := range all {
		if strings.HasSuffix(path, suffix) {
			texts[path] = text
		}
	}
	return texts
}

// everyText returns the contents of all Go, Markdown and text files, by path.
var everyText = sync.OnceValues(func() (map[string]string, error) {
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".servers", "bin", "target"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".txt"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			path, err = filepath.Rel(root, path)
		}
		texts[path] = string(text)
		return err
	})
	return texts, err
})

// declaredTests returns the names of all tests, benchmarks and examples.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared, declaration := map[string]bool{}, regexp.MustCompile(`^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	for _, text := range sources(t, "_test.go") {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "func ") { // this is faster than the regular expression alone
				continue
			}
			if m := declaration.FindStringSubmatch(line); m != nil {
				declared[m[1]] = true
			}
		}
	}
	require.Greater(t, len(declared), 50, "found too few tests")
	return declared
}

// The exported errors include the reasons for a loss.
func TestExportedErrorsHaveExamples(t *testing.T) {
	t.Parallel()
	declared, found := declaredTests(t), 0
	private := regexp.MustCompile(`^(cmd|examples|test|bench|scripts|tools)/|internal/|_test\.go$`)
	exported := regexp.MustCompile(`(?m)^(?:var |type |\t)(Err[A-Z]\w*|Loss[A-Z]\w*|[A-Z]\w*Error)(?: Loss)? (?:=|struct)`)
	for path, text := range sources(t, ".go") {
		if private.MatchString(filepath.ToSlash(path)) {
			continue
		}
		for _, m := range exported.FindAllStringSubmatch(text, -1) {
			found++
			assert.True(t, declared["Example"+m[1]], "%s: %s has no Example", path, m[1])
		}
	}
	require.Greater(t, found, 30, "found too few errors")
}

func TestDocsNameExistingTests(t *testing.T) {
	t.Parallel()
	declared := declaredTests(t)
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
	require.Positive(t, found, "found no test names")
}

// Each Go block must occur in an example, except for the programs of the quickstart, which
// scripts/newcomer.sh builds and runs.
func TestDocsSnippetsAreInExamples(t *testing.T) {
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
				require.Equal(t, "docs/quickstart.md", filepath.ToSlash(path), "only the programs of the quickstart are compiled")
				continue
			}
			if !strings.Contains(examples.String(), words(b[1])) {
				t.Errorf("%s: no example contains this snippet:\n%s", path, b[1])
			}
		}
	}
	for _, path := range []string{"README.md", "README.zh-CN.md", "docs/migration.md", "docs/quickstart.md"} {
		require.Positive(t, found[path], "found no Go snippet in %s", path)
	}
}

// words normalizes white space in text.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

var publicPackages = []string{
	".", "rlock", "rfairlock", "rreadwritelock", "rfencedlock", "rsemaphore", "rlatch", "rmultilock", "leader",
	"admin", "fence", "codec", "transport", "pubsub", "embedded", "redlatchui",
}

func TestPublicDeclarationsUseNoInternalTypes(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, folder := range publicPackages {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			looked++
			for _, name := range internalTypes(file) {
				t.Errorf("%s: an exported declaration uses the internal type %s", path, name)
			}
		}
	}
	require.Greater(t, looked, 30, "found too few files")
}

// internalTypes returns the types of internal packages, such as engine.Engine, that a file's exported
// declarations use. It ignores the values of variables.
func internalTypes(file *ast.File) []string {
	internal := map[string]bool{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if strings.Contains(path, "/internal/") {
			name := path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			internal[name] = true
		}
	}
	ast.FileExports(file)
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body = nil; isHidden(n) {
				return false
			}
		case *ast.ValueSpec:
			n.Values = nil
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] {
				found = append(found, x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// isHidden reports whether f is a method of an unexported type.
func isHidden(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return false
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && !name.IsExported()
}

func TestPlantedBugsOfAssuranceExist(t *testing.T) {
	t.Parallel()
	page, lists := sources(t, ".md")[filepath.Join("docs", "assurance.md")], sources(t, ".txt")
	bugs := regexp.MustCompile("\\| `([a-z]+)/([^`]+)` \\|").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(bugs), 5, "found no planted bugs in the page")
	for _, b := range bugs {
		list := lists[filepath.Join("test", "mutants", b[1]+".txt")]
		assert.Contains(t, list, "mutant "+b[2]+"\n", "planted bug %s/%s", b[1], b[2])
	}
}

// laterScenarios lists the scenarios that do not have a row.
var laterScenarios = map[int]string{
	12: "fencing tokens", 45: "locks of several names",
}

// Each scenario must have a row with a test or with the reason why it does not apply.
// TestDocsNameExistingTests checks that the tests exist.
func TestScenariosHaveTestOrReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Scenarios\n")
	require.True(t, found, "no section Scenarios")
	rows := map[int][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| U(\d+) \|(.*)\|$`).FindAllStringSubmatch(section, -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		assert.NotContains(t, rows, n, "U%d has two rows", n)
		rows[n] = strings.Split(row[2], "|")
	}
	test := regexp.MustCompile("`Test[A-Z]\\w*`")
	for n := 1; n <= 45; n++ {
		if laterScenarios[n] != "" {
			assert.NotContains(t, rows, n, "U%d has a row: remove it from laterScenarios", n)
			continue
		}
		if !assert.Len(t, rows[n], 3, "U%d has no row", n) {
			continue
		}
		does, tests := strings.TrimSpace(rows[n][1]), rows[n][2]
		reason, without := strings.CutPrefix(does, "does not apply: ")
		assert.NotEmpty(t, does, "U%d: empty second column", n)
		assert.Equal(t, without, !test.MatchString(tests), "U%d must have either a test or a reason", n)
		assert.NotEmpty(t, reason, "U%d: no reason", n)
	}
}

func TestMigrationPageListsRedissonSettings(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join("testdata", "redisson-settings.txt"))
	require.NoError(t, err)
	page := sources(t, ".md")[filepath.Join("docs", "migration.md")]
	require.NotEmpty(t, page)
	found := 0
	for line := range strings.Lines(string(list)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "#") {
			found++
			assert.Contains(t, page, "`"+name+"`", "setting without a row")
		}
	}
	require.Greater(t, found, 90)
}

// When a lost lock is unlocked, Java throws an exception, and Go returns ErrLost and not ErrNotHeld.
func TestReadmeNamesErrorOfLateUnlock(t *testing.T) {
	t.Parallel()
	texts := sources(t, ".md")
	for _, path := range []string{"README.md", "README.zh-CN.md"} {
		rows := 0
		for line := range strings.Lines(texts[path]) {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "IllegalMonitorStateException") {
				rows++
				assert.Contains(t, line, "`redlatch.ErrLost`", path)
				assert.NotContains(t, line, "ErrNotHeld", path)
			}
		}
		assert.Equal(t, 1, rows, path)
	}
}
