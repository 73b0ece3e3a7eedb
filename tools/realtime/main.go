// Program realtime is a vet tool. It reports tests that depend on the speed of the machine: outside a testing/synctest
// bubble they measure time, sleep or hold a lease below 10 s. redistest.InRealTime repeats such tests after a stall.
package main

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

var analyzer = &analysis.Analyzer{Name: "realtime", Doc: "report tests that depend on real time", Run: run, FactTypes: []analysis.Fact{new(habit)}}

func main() { unitchecker.Main(analyzer) }

type habit string

const bubbles habit = "bubbles"

func (*habit) AFact() {}

func run(pass *analysis.Pass) (any, error) {
	if !strings.HasPrefix(pass.Pkg.Path(), "github.com/redlatch/redlatch") {
		return nil, nil
	}
	for range 6 { // a habit passes to the function's callers in each round
		for _, file := range pass.Files {
			test := strings.HasSuffix(pass.Fset.File(file.Pos()).Name(), "_test.go")
			for _, decl := range file.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil && (test || strings.Contains(pass.Pkg.Path(), "/test/")) {
					fact := learn(pass, fn, test)
					pass.ExportObjectFact(pass.TypesInfo.Defs[fn.Name], &fact)
				}
			}
		}
	}
	for _, known := range pass.AllObjectFacts() {
		slow, f := *known.Fact.(*habit), known.Object
		if f.Pkg() == pass.Pkg && slow != "" && slow != bubbles && strings.HasPrefix(f.Name(), "Test") {
			pass.Reportf(f.Pos(), "%s %s: use fake time or redistest.InRealTime", f.Name(), slow)
		}
	}
	return nil, nil
}

func learn(pass *analysis.Pass, fn *ast.FuncDecl, test bool) (found habit) {
	var look func(ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if of := habitOf(pass, n, test); of != bubbles {
				found = cmp.Or(found, of)
			}
		case *ast.CallExpr:
			name, _ := n.Fun.(*ast.Ident)
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok {
				name = selector.Sel
			}
			for _, arg := range n.Args {
				v := pass.TypesInfo.Types[arg]
				switch _, isFunc := v.Type.Underlying().(*types.Signature); {
				case !isFunc || name == nil || habitOf(pass, name, test) != bubbles:
					ast.Inspect(arg, look)
				case usesVariable(pass, arg):
					found = bubbles
				}
				if name != nil && strings.Contains(name.Name, "Lease") && v.Value != nil && v.Type.String() == "time.Duration" &&
					constant.Compare(v.Value, token.LSS, constant.MakeInt64(int64(10*time.Second))) {
					found = cmp.Or(found, "holds a short lease")
				}
			}
			ast.Inspect(n.Fun, look)
			return false
		}
		return true
	}
	ast.Inspect(fn.Body, look)
	return found
}

// usesVariable reports whether a function is a variable, or uses a function in a variable outside of it.
func usesVariable(pass *analysis.Pass, fn ast.Expr) bool {
	for n := range ast.Preorder(fn) {
		if id, ok := n.(*ast.Ident); ok {
			v, isVar := pass.TypesInfo.Uses[id].(*types.Var)
			if _, is := pass.TypesInfo.TypeOf(id).(*types.Signature); is && isVar && (v.Pos() < fn.Pos() || v.Pos() > fn.End()) {
				return true
			}
		}
	}
	return false
}

func habitOf(pass *analysis.Pass, name *ast.Ident, test bool) (of habit) {
	f, ok := pass.TypesInfo.Uses[name].(*types.Func)
	switch {
	case !ok:
	case f.FullName() == "testing/synctest.Test", strings.HasSuffix(f.FullName(), "/redistest.InRealTime"):
		of = bubbles
	case f.FullName() == "time.Sleep" && test:
		of = "sleeps"
	case (f.FullName() == "time.Since" || f.FullName() == "time.Until") && test, f.Name() == "WithinDuration":
		of = "measures time"
	default:
		pass.ImportObjectFact(f, &of)
	}
	return of
}
