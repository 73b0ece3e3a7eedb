package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// root is the root of the checkout.
const root = "../.."

func mustRead(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

var declaredTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declaredTest.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

// This finds outdated mutants without planting them.
func TestMutantsApplyAndTestsExist(t *testing.T) {
	t.Parallel()
	all, err := readLists(lists)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	require.LessOrEqual(t, len(all), 300, "one for each promise: remove one whose bug another also plants")
	seen := map[string]bool{}
	tests := map[string]map[string]bool{}
	for _, m := range all {
		assert.False(t, seen[m.name], "%s is there twice", m.name)
		seen[m.name] = true
		assert.FileExists(t, filepath.Join(root, m.list()))
		changed, err := m.apply(mustRead(t, m.file))
		if !assert.NoError(t, err, m.name) {
			continue
		}
		if strings.HasSuffix(m.file, ".go") && testlevel.IsAll() {
			_, err = parser.ParseFile(token.NewFileSet(), m.file, changed, parser.SkipObjectResolution)
			assert.NoError(t, err, m.name)
		}
		for _, c := range m.red {
			if tests[c.pkg] == nil {
				tests[c.pkg] = testsOf(t, c.pkg)
			}
			assert.True(t, tests[c.pkg][c.test], "%s: there is no test %s", m.name, c)
		}
	}
}
