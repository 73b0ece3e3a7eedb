//go:build ignore

// Program sizes checks limits that keep the code readable:
//
//	a Go file           at most 400 lines
//	a function          at most 60 lines (in tests 120: tables are long)
//	an exported name    has a doc comment that starts with it, except fields
//	the root folder     at most 40 files, not counting hidden ones
//	redistest.InRealTime  at most 40 calls: tests that a slow machine can disturb
//
// It checks the current folder and its nested modules, except generated files and testdata, and
// fails if there are findings. Run it from the root: go run scripts/sizes.go
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxFileLines     = 400
	maxFuncLines     = 60
	maxTestFuncLines = 120
	maxRootFiles     = 40
	maxInRealTime    = 40
)

type checker struct {
	fset     *token.FileSet
	findings []string
	files    int
	lengths  []int
	realTime int
}

func main() {
	c := &checker{fset: token.NewFileSet()}
	if err := filepath.WalkDir(".", c.visit); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(2)
	}
	if c.files == 0 {
		fmt.Fprintln(os.Stderr, "sizes: no Go files here: run it from the root")
		os.Exit(2)
	}
	c.checkRoot()
	if c.realTime > maxInRealTime {
		c.findings = append(c.findings, fmt.Sprintf("%d tests in real time, at most %d", c.realTime, maxInRealTime))
	}
	for _, f := range c.findings {
		fmt.Println(f)
	}
	if len(c.findings) > 0 {
		fmt.Fprintf(os.Stderr, "sizes: %d findings\n", len(c.findings))
		os.Exit(1)
	}
	fmt.Println(c.summary())
}

func (c *checker) checkRoot() {
	entries, err := os.ReadDir(".")
	if err != nil {
		c.findings = append(c.findings, err.Error())
	}
	files := 0
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files++
		}
	}
	if files > maxRootFiles {
		c.findings = append(c.findings, fmt.Sprintf("the root folder has %d files, at most %d", files, maxRootFiles))
	}
}

func (c *checker) summary() string {
	slices.Sort(c.lengths)
	median, longest := 0, 0
	if n := len(c.lengths); n > 0 {
		median, longest = c.lengths[n/2], c.lengths[n-1]
	}
	return fmt.Sprintf("sizes: %d files, %d functions outside of tests, median %d lines (aim: 10), longest %d; %d tests in real time",
		c.files, len(c.lengths), median, longest, c.realTime)
}

func (c *checker) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if d.IsDir() {
		if path != "." && (d.Name() == "testdata" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(path, ".go") {
		return nil
	}
	return c.file(path)
}

func (c *checker) file(path string) error {
	f, err := parser.ParseFile(c.fset, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	c.files++
	isTest := strings.HasSuffix(path, "_test.go")
	if n := c.fset.File(f.FileStart).LineCount(); n > maxFileLines {
		c.find(f.FileStart, "the file has %d lines, more than %d", n, maxFileLines)
	}
	for n := range ast.Preorder(f) {
		if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "InRealTime" {
			c.realTime++
		}
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			c.length(fn, isTest)
		}
		if !isTest {
			c.documented(decl)
		}
	}
	return nil
}

func (c *checker) length(fn *ast.FuncDecl, isTest bool) {
	limit := maxFuncLines
	if isTest {
		limit = maxTestFuncLines
	}
	n := c.fset.Position(fn.End()).Line - c.fset.Position(fn.Pos()).Line + 1
	if !isTest {
		c.lengths = append(c.lengths, n)
	}
	if n > limit {
		c.find(fn.Pos(), "%s has %d lines, more than %d", fn.Name.Name, n, limit)
	}
}

func (c *checker) documented(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && exportedReceiver(d) {
			c.doc(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			c.spec(d, spec)
		}
	}
}

func (c *checker) spec(d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		c.doc(s.Name, firstDoc(s.Doc, d.Doc))
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && firstDoc(s.Doc, s.Comment, d.Doc) == nil {
				c.find(name.Pos(), "%s has no doc comment", name.Name)
			}
		}
	}
}

func (c *checker) doc(name *ast.Ident, doc *ast.CommentGroup) {
	if doc == nil {
		c.find(name.Pos(), "%s has no doc comment", name.Name)
		return
	}
	words := strings.Fields(doc.Text())
	if len(words) > 0 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || strings.TrimRight(words[0], ".,:;'") != name.Name && !strings.HasPrefix(words[0], name.Name+"'") {
		c.find(name.Pos(), "the doc comment of %s does not start with it", name.Name)
	}
}

func (c *checker) find(pos token.Pos, format string, args ...any) {
	p := c.fset.Position(pos)
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
}

func firstDoc(groups ...*ast.CommentGroup) *ast.CommentGroup {
	for _, g := range groups {
		if g != nil {
			return g
		}
	}
	return nil
}

// exportedReceiver reports whether fn is a function, or a method that godoc shows.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
