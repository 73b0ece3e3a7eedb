package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const designPage = "docs/design.md"

// section returns the text of a page below a heading of the second level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, "%s has no section %q", page, heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// The three walks through the code name functions that are where they say, and an arrow
// between two functions is a call.
func TestEachStepOfTheDesignIsInTheCode(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]int{
		"A lock call in ten steps":  10,
		"A lost reply in six steps": 6,
		"A renewal in five steps":   5,
	} {
		rows := regexp.MustCompile(`(?m)^\| (\d+) \| .* \| (.*) \|$`).FindAllStringSubmatch(section(t, designPage, heading), -1)
		assert.Len(t, rows, want, "%s", heading)
		for i, row := range rows {
			assert.Equal(t, fmt.Sprint(i+1), row[1], "%s: steps are counted", heading)
			for _, err := range checkPath(row[2], declarations) {
				t.Errorf("%s, step %s: %v", heading, row[1], err)
			}
		}
	}
}

// checkPath returns what is wrong with the last cell of a step: links to files, functions
// that these files declare, and arrows that are calls.
func checkPath(cell string, declared func(path string) map[string]*ast.FuncDecl) (wrong []error) {
	token := regexp.MustCompile("\\]\\(\\.\\./([^)]*)\\)|`([^`]*)`|(→)|;")
	var path, functions = "", 0
	var caller *ast.FuncDecl // the function before an arrow
	var last *ast.FuncDecl
	for _, m := range token.FindAllStringSubmatch(cell, -1) {
		switch {
		case m[1] != "":
			path = m[1]
		case m[3] != "":
			caller = last
		case m[2] == "": // a semicolon begins another chain
			caller, last = nil, nil
		default:
			functions++
			last = declared(path)[m[2]]
			if last == nil {
				wrong = append(wrong, fmt.Errorf("%s does not declare %s", path, m[2]))
			} else if caller != nil && !calls(caller, last.Name.Name) {
				wrong = append(wrong, fmt.Errorf("%s does not call %s", caller.Name.Name, m[2]))
			}
			caller = nil
		}
	}
	if functions == 0 {
		wrong = append(wrong, fmt.Errorf("it names no function: %s", cell))
	}
	return wrong
}

// declarations returns the functions of a file by name; methods by type and name.
func declarations(path string) map[string]*ast.FuncDecl {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(path)), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	all := map[string]*ast.FuncDecl{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		all[name] = f
	}
	return all
}

// calls reports whether the body of f names a function, by itself or through an interface.
func calls(f *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

func TestStepsThatAreWrongAreFound(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package p
func (l *Lock) Lock() { l.acquire() }
func (l *Lock) acquire() {}
func (l *Lock) other() {}
`, parser.SkipObjectResolution)
	require.NoError(t, err)
	all := map[string]*ast.FuncDecl{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		require.True(t, ok)
		all["Lock."+f.Name.Name] = f
	}
	declared := func(path string) map[string]*ast.FuncDecl {
		if path == "a.go" {
			return all
		}
		return nil
	}
	for cell, mistakes := range map[string]int{
		"[a](../a.go) `Lock.Lock` → `Lock.acquire`":              0,
		"[a](../a.go) `Lock.Lock` → [a](../a.go) `Lock.acquire`": 0,
		"[a](../a.go) `Lock.Lock`; `Lock.other`":                 0,
		"[a](../a.go) `Lock.Lock` → `Lock.other`":                1,
		"[a](../a.go) `Lock.gone`":                               1,
		"[b](../b.go) `Lock.Lock`":                               1,
		"[a](../a.go)":                                           1,
	} {
		assert.Len(t, checkPath(cell, declared), mistakes, cell)
	}
}

// A glossary that is longer is not learned.
func TestTheGlossaryIsShort(t *testing.T) {
	t.Parallel()
	rows := strings.Count(section(t, designPage, "Words"), "\n| ") - 1 // without the head
	assert.Greater(t, rows, 10, "the glossary was not found")
	assert.LessOrEqual(t, rows, 20)
}

// The layout names each package that users compile, and the command line's.
func TestTheLayoutNamesEachPackage(t *testing.T) {
	t.Parallel()
	layout := section(t, designPage, "Layout")
	folders := map[string]bool{}
	for path := range sources(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, "_test.go") && (strings.HasPrefix(folder, "internal/") || !strings.Contains(folder, "/")) {
			folders[folder] = true
		}
	}
	require.Greater(t, len(folders), 25, "the packages were not found")
	for folder := range folders {
		switch {
		case folder == ".", folder == "scripts", folder == "bench", folder == "tools":
		case strings.HasPrefix(folder, "internal/test/"):
		default:
			assert.Contains(t, layout, "`"+folder+"`")
		}
	}
}
