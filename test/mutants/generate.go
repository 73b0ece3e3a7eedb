package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// generate makes mutants of the lines that differ from a revision, in the files of the
// product. The tests that may catch one are those of its package, those of the packages in
// with, and those of the packages whose tests catch a planted bug of the same package.
func generate(ctx context.Context, root, since string, with []string, planted []mutant) ([]mutant, error) {
	names, err := changed(ctx, root, since)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range names {
		if !isProduct(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))) //nolint:gosec // a file of the checkout
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines, err := changedLines(ctx, root, since, name)
		if err != nil {
			return nil, err
		}
		edits, err := editsOf(name, text, lines)
		if err != nil {
			return nil, err
		}
		red := suitesOf(root, name, with, planted)
		for _, e := range edits {
			if m, ok := e.mutant(name, string(text), red); ok {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// isProduct reports whether a file is code that users run.
func isProduct(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "internal/test/") &&
		!strings.HasPrefix(name, "scripts/") && !strings.HasPrefix(name, "bench/")
}

// suitesOf returns the packages whose tests may catch a mutant of a file: each counts as one
// test.
func suitesOf(root, file string, with []string, planted []mutant) []catcher {
	pkgs := append([]string{path.Dir(file)}, with...)
	for _, m := range planted {
		if path.Dir(m.file) != path.Dir(file) {
			continue
		}
		for _, c := range m.red {
			pkgs = append(pkgs, c.pkg)
		}
	}
	var red []catcher
	for _, pkg := range pkgs {
		tests, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go")) // the pattern is fine
		if c := (catcher{pkg: pkg}); len(tests) > 0 && !slices.Contains(red, c) {
			red = append(red, c)
		}
	}
	return red
}

// hunk matches where a hunk of a diff stands in the new file: its first line and, unless
// that is one, the number of its lines.
var hunk = regexp.MustCompile(`(?m)^@@ [^+]*\+(\d+)(?:,(\d+))? @@`)

// changedLines returns the lines of a file that a revision has not.
func changedLines(ctx context.Context, root, since, name string) (map[int]bool, error) {
	out, err := git(ctx, root, "diff", "--unified=0", "--relative", since, "--", name)
	if err != nil {
		return nil, err
	}
	lines := map[int]bool{}
	for _, m := range hunk.FindAllStringSubmatch(strings.Join(out, ""), -1) {
		first, _ := strconv.Atoi(m[1]) // digits
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2]) // as above
		}
		for i := range n {
			lines[first+i] = true
		}
	}
	return lines, nil
}

// edit is a change to the text of a file, from one offset to another.
type edit struct {
	from, to int
	text     string
	what     string
	line     int
}

// editsOf returns the edits of a file that begin in lines.
func editsOf(name string, text []byte, lines map[int]bool) ([]edit, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return nil, err
	}
	var all []edit
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		for _, e := range editsOfNode(fset, text, n) {
			if e.line = fset.Position(n.Pos()).Line; lines[e.line] {
				all = append(all, e)
			}
		}
		return true
	})
	return all, nil
}

// swapped has for an operator the one that takes its place.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// editsOfNode returns the edits of one node: an operator swapped, a condition negated, a
// statement left out, an error dropped.
func editsOfNode(fset *token.FileSet, text []byte, n ast.Node) []edit {
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	source := func(n ast.Node) string { return string(text[at(n.Pos()):at(n.End())]) }
	leftOut := func(n ast.Node) []edit {
		return []edit{{at(n.Pos()), at(n.End()), "", "without " + short(source(n)), 0}}
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, ok := swapped[n.Op]; ok {
			from := at(n.OpPos)
			return []edit{{from, from + len(n.Op.String()), to.String(), short(source(n)) + " with " + to.String(), 0}}
		}
	case *ast.IfStmt:
		return []edit{{at(n.Cond.Pos()), at(n.Cond.End()), "!(" + source(n.Cond) + ")", "not " + short(source(n.Cond)), 0}}
	case *ast.ExprStmt, *ast.DeferStmt, *ast.IncDecStmt, *ast.SendStmt:
		return leftOut(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return leftOut(n)
		}
	case *ast.ReturnStmt:
		if len(n.Results) > 0 {
			last := n.Results[len(n.Results)-1]
			if id, ok := last.(*ast.Ident); ok && strings.HasPrefix(strings.ToLower(id.Name), "err") {
				return []edit{{at(last.Pos()), at(last.End()), "nil", "return nil for " + id.Name, 0}}
			}
		}
	}
	return nil
}

// short returns the first line of a text, at most 50 bytes of it.
func short(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > 50 {
		text = text[:50] + "…"
	}
	return text
}

// mutant returns the edit as a mutant of whole lines, with as many lines around them as
// make it unique.
func (e edit) mutant(name, text string, red []catcher) (mutant, bool) {
	from := strings.LastIndexByte(text[:e.from], '\n') + 1
	to := e.to + strings.IndexByte(text[e.to:]+"\n", '\n') + 1
	for to <= len(text) {
		m := mutant{
			name: fmt.Sprintf("%s:%d %s", name, e.line, e.what), at: name, file: name, red: red, generated: true,
			old: text[from:to], new: text[from:e.from] + e.text + text[e.to:to],
		}
		if _, err := m.apply(text); err == nil {
			return m, len(red) > 0
		}
		if from == 0 {
			break
		}
		from = strings.LastIndexByte(text[:from-1], '\n') + 1
	}
	return mutant{}, false
}
