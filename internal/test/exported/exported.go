// Package exported lists the exported functions of a package, for tests that require a row for each.
package exported

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Names returns the exported functions, and methods of exported types, of the package in dir, as
// package.Function and package.Type.Method. It fails the test if there are none.
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
