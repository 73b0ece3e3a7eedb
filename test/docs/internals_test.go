package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// publicPackages are what users import.
var publicPackages = []string{".", "rlock", "rfairlock", "rfencedlock", "admin", "fence", "codec", "transport", "pubsub", "embedded"}

// What users see in the documentation of a public package they can name.
func TestNoInternalTypeIsInAPublicDeclaration(t *testing.T) {
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
				t.Errorf("%s declares something of %s, which users cannot name", path, name)
			}
		}
	}
	require.Greater(t, looked, 30, "no files were found: the check itself is broken")
}

// internalTypes returns the types of internal packages that a file's exported declarations
// name, such as engine.Engine. Values of variables are no declarations of types.
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

// isHidden reports whether a function is a method of a type that is not exported.
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

func TestInternalTypesAreFound(t *testing.T) {
	t.Parallel()
	const source = `package p
import "example.com/internal/engine"
type hidden = engine.Engine
type Shown struct { hidden; e engine.Engine }
func (s *Shown) Method() { engine.Do() }
func (h *hidden) Method(e engine.Engine) {}
func Bad(e *engine.Engine) {}
type Worse struct { E engine.Config }
type Worst = engine.Lock
var Err = engine.ErrLost
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Equal(t, []string{"engine.Engine", "engine.Config", "engine.Lock"}, internalTypes(file))
}
