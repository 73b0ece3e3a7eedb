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

// generate makes mutants of changed lines. Their tests are those of the package itself, and of the packages that catch
// the bugs planted in it.
func generate(ctx context.Context, root, since string, planted []mutant) ([]mutant, error) {
	names, err := changed(ctx, root, since)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))) //nolint:gosec // a file in the checkout
		if !isProduct(name) || os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines, err := changedLines(ctx, root, since, name)
		if err != nil {
			return nil, err
		}
		made, err := mutantsOf(name, string(text), lines, suitesOf(root, name, planted))
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

func isProduct(name string) bool {
	machinery := regexp.MustCompile(`^(test|internal/test|scripts|bench)/|_test\.go$`)
	return strings.HasSuffix(name, ".go") && !machinery.MatchString(name)
}

func suitesOf(root, file string, planted []mutant) []catcher {
	pkgs := []string{path.Dir(file)}
	for _, m := range planted {
		if path.Dir(m.file) == path.Dir(file) {
			for _, c := range m.red {
				pkgs = append(pkgs, c.pkg)
			}
		}
	}
	var red []catcher
	for _, pkg := range pkgs {
		tests, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
		if c := (catcher{pkg: pkg}); len(tests) > 0 && !slices.Contains(red, c) {
			red = append(red, c)
		}
	}
	return red
}

// hunk matches the position of a hunk in the new file, which is its first line and, unless it is 1, its length.
var hunk = regexp.MustCompile(`(?m)^@@ [^+]*\+(\d+)(?:,(\d+))? @@`)

func changedLines(ctx context.Context, root, since, name string) (map[int]bool, error) {
	out, err := git(ctx, root, "diff", "--unified=0", "--relative", since, "--", name)
	lines := map[int]bool{}
	for _, m := range hunk.FindAllStringSubmatch(strings.Join(out, ""), -1) {
		first, _ := strconv.Atoi(m[1])
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		for i := range n {
			lines[first+i] = true
		}
	}
	return lines, err
}

func mutantsOf(name, text string, lines map[int]bool, red []catcher) (all []mutant, err error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, 0)
	if err != nil || len(red) == 0 {
		return nil, err
	}
	file := fset.File(tree.Pos())
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil || !lines[file.Line(n.Pos())] {
			return n != nil
		}
		e, ok := editOf(file, text, n)
		if !ok {
			return true
		}
		m := mutant{name: fmt.Sprintf("%s:%d %s", name, file.Line(n.Pos()), e.what), file: name, red: red, generated: true}
		if m.old, m.new, ok = e.wholeLines(text); ok {
			all = append(all, m)
		}
		return true
	})
	return all, nil
}

type edit struct {
	from, to int
	text     string
	what     string
}

var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// editOf returns an edit that swaps an operator, negates a condition, removes a statement or drops an error.
func editOf(file *token.File, text string, n ast.Node) (e edit, ok bool) {
	source := func(n ast.Node) string { return text[file.Offset(n.Pos()):file.Offset(n.End())] }
	replace := func(from, to token.Pos, by, what string) (edit, bool) {
		what, _, _ = strings.Cut(what, "\n")
		return edit{file.Offset(from), file.Offset(to), by, what}, true
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, ok := swapped[n.Op]; ok {
			return replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), to.String()+" in "+source(n))
		}
	case *ast.IfStmt:
		return replace(n.Cond.Pos(), n.Cond.End(), "!("+source(n.Cond)+")", "not "+source(n.Cond))
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			break
		}
		last := n.Results[len(n.Results)-1]
		if id, ok := last.(*ast.Ident); ok && strings.HasPrefix(strings.ToLower(id.Name), "err") {
			return replace(last.Pos(), last.End(), "nil", "return nil for "+id.Name)
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return replace(n.Pos(), n.End(), "", "without "+source(n))
		}
	case *ast.ExprStmt, *ast.DeferStmt, *ast.IncDecStmt, *ast.SendStmt:
		return replace(n.Pos(), n.End(), "", "without "+source(n))
	}
	return edit{}, false
}

func (e edit) wholeLines(text string) (before, after string, ok bool) {
	to := e.to + strings.IndexByte(text[e.to:]+"\n", '\n') + 1
	for from := e.from; from > 0 && to <= len(text); {
		from = strings.LastIndexByte(text[:from-1], '\n') + 1
		before, after = text[from:to], text[from:e.from]+e.text+text[e.to:to]
		if count("\n"+text, "\n"+before) == 1 {
			return before, after, true
		}
	}
	return "", "", false
}
