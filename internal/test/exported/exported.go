// Package exported lists what a package exports, so that tests can hold that each name has
// a row in a table of theirs.
package exported

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Names returns the exported functions, and methods of exported types, of the package
// in folder dir: package.Function and package.Type.Method. It ends the test when there
// are none. The adapters, modules of their own, compare their tables with it, too.
func Names(tb testing.TB, dir string) map[string]bool {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		tb.Fatalf("exported: %v", err)
	}
	names := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatalf("exported: %v", err)
		}
		for _, d := range file.Decls {
			if f, isFunc := d.(*ast.FuncDecl); isFunc && f.Name.IsExported() {
				if name := qualified(f); name != "" {
					names[file.Name.Name+"."+name] = true
				}
			}
		}
	}
	if len(names) == 0 {
		tb.Fatalf("exported: nothing is exported in %s: the check itself is broken", dir)
	}
	return names
}

// qualified returns Type.Method or Func, "" for methods of unexported types.
func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, isPointer := of.(*ast.StarExpr); isPointer {
		of = star.X
	}
	name, isName := of.(*ast.Ident)
	if !isName || !name.IsExported() {
		return ""
	}
	return name.Name + "." + f.Name.Name
}
