// Program redlatchvet is a vet tool that reports mistakes in programs that use Redlatch. Install it
// with "go install github.com/redlatch/redlatch/redlatchvet@latest", and run it in a module with
//
//	go vet -vettool=$(which redlatchvet) ./...
//
// It has three checks, each with a flag such as -lockagain=false:
//
//	droppedhold    a hold that the program never releases
//	callercontext  the caller's context in a function passed to Do
//	lockagain      a second Lock call on a held lock without the hold's context, which deadlocks
//
// It may miss mistakes but should not report correct code. It skips _test.go files.
package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"iter"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

const core = "github.com/redlatch/redlatch/"

var checks = []*analysis.Analyzer{droppedHold, callerContext, lockAgain}

func main() { unitchecker.Main(checks...) }

func analyzer(name, doc string, run func(checked)) *analysis.Analyzer {
	return &analysis.Analyzer{Name: name, Doc: doc, Requires: []*analysis.Analyzer{inspect.Analyzer}, Run: func(pass *analysis.Pass) (any, error) {
		run(checked{pass})
		return nil, nil
	}}
}

type checked struct{ *analysis.Pass }

func nodes[N ast.Node](p checked) iter.Seq2[inspector.Cursor, N] {
	return func(yield func(inspector.Cursor, N) bool) {
		for c, n := range within[N](p.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()) { //nolint:errcheck // it has this type
			if !strings.HasSuffix(p.Fset.File(n.Pos()).Name(), "_test.go") && !yield(c, n) {
				return
			}
		}
	}
}

func within[N ast.Node](c inspector.Cursor) iter.Seq2[inspector.Cursor, N] {
	return func(yield func(inspector.Cursor, N) bool) {
		for c := range c.Preorder(*new(N)) {
			if !yield(c, c.Node().(N)) { //nolint:errcheck // it has this type
				return
			}
		}
	}
}

func (p checked) callee(call *ast.CallExpr) (*types.Func, ast.Expr) {
	fn, ok := typeutil.Callee(p.TypesInfo, call).(*types.Func)
	if !ok {
		fn = types.NewFunc(0, nil, "", new(types.Signature))
	}
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return fn, selector.X
	}
	return fn, nil
}

var (
	holdType   = regexp.MustCompile(`^\*` + core + `\w+\.Hold$`)
	optionType = regexp.MustCompile(`^\[\]` + core + `\w+\.\w*Option$`)
)

// acquires compares only names and result types, so that it also recognizes interfaces and
// wrappers.
func (p checked) acquires(call *ast.CallExpr) bool {
	fn, _ := p.callee(call)
	return slices.Contains([]string{"Lock", "TryLock", "Resume", "Acquire", "TryAcquire"}, fn.Name()) &&
		fn.Signature().Results().Len() == 2 && holdType.MatchString(fn.Signature().Results().At(0).Type().String())
}

func (p checked) isDo(call *ast.CallExpr) bool {
	fn, _ := p.callee(call)
	params := fn.Signature().Params()
	return fn.Name() == "Do" && params.Len() > 0 && optionType.MatchString(params.At(params.Len()-1).Type().String())
}

// acquisition returns the paths of the lock and the context that are used in a call. It ignores
// calls with arguments after the context that are neither options nor a function, because
// semaphores and wrappers that take a name may acquire something different on each call.
func (p checked) acquisition(call *ast.CallExpr) (lock, ctx string) {
	if !p.acquires(call) && !p.isDo(call) || len(call.Args) == 0 {
		return "", ""
	}
	fn, receiver := p.callee(call)
	second := fn.Signature().Params().At(min(1, fn.Signature().Params().Len()-1)).Type()
	if _, isFunc := second.Underlying().(*types.Signature); !isFunc && !optionType.MatchString(second.String()) {
		return "", ""
	}
	if _, isCall := ast.Unparen(receiver).(*ast.CallExpr); !isCall && p.hasReaders() {
		return "", ""
	}
	return p.path(receiver), p.path(call.Args[0])
}

func (p checked) hasReaders() bool {
	for _, used := range p.TypesInfo.Uses {
		if fn, ok := used.(*types.Func); ok && fn.FullName() == "(*"+core+"rreadwritelock.Lock).Read" {
			return true
		}
	}
	return false
}

func isIn[N ast.Node](c, outer inspector.Cursor) bool {
	for in := range c.Enclosing(*new(N)) {
		if outer.Contains(in) {
			return true
		}
	}
	return false
}

func isApart(c, of inspector.Cursor) bool {
	return isIn[*ast.DeferStmt](c, of) || isIn[*ast.GoStmt](c, of)
}

func (p checked) runner(literal inspector.Cursor) string {
	switch parent := literal.Parent().Node().(type) {
	case *ast.CallExpr:
		if p.isDo(parent) {
			return "Do"
		}
	case *ast.KeyValueExpr:
		if field := p.variable(parent.Key); field != nil && field.Name() == "Lead" && field.Pkg().Path() == core+"leader" {
			return "leader.Run"
		}
	}
	return ""
}

func (p checked) isOuter(e ast.Expr, literal ast.Node) bool {
	v := p.variable(e)
	return v != nil && v.Type().String() == "context.Context" && v.Kind() != types.PackageVar && v.Kind() != types.FieldVar &&
		(v.Pos() < literal.Pos() || v.Pos() > literal.End())
}

func (p checked) variable(e ast.Expr) *types.Var {
	id, _ := ast.Unparen(e).(*ast.Ident)
	v, _ := p.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// path returns the same string for all expressions that denote the same value. It returns "" for
// other expressions, such as the read lock of a read/write lock.
func (p checked) path(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v := p.variable(e); v != nil {
			return fmt.Sprintf("%p", v)
		}
	case *ast.SelectorExpr:
		if of := p.path(e.X); of != "" {
			return of + "." + e.Sel.Name
		}
	case *ast.CallExpr:
		switch fn, receiver := p.callee(e); fn.FullName() {
		case "context.Background":
			return "context.Background"
		case "(*" + core + "rreadwritelock.Lock).Write":
			return p.path(receiver) + fn.Name()
		}
	}
	return ""
}

func (p checked) assigns(c inspector.Cursor, paths ...string) bool {
	for _, assign := range within[*ast.AssignStmt](c) {
		for _, to := range assign.Lhs {
			prefix := p.path(to)
			if prefix != "" && slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path+".", prefix+".") }) {
				return true
			}
		}
	}
	return false
}
