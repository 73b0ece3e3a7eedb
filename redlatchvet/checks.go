package main

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

var droppedHold = analyzer("droppedhold", "report holds that are never released", func(p checked) {
	for c, call := range nodes[*ast.CallExpr](p) {
		dropped := p.acquires(call) && slices.Contains([]edge.Kind{edge.ExprStmt_X, edge.GoStmt_Call, edge.DeferStmt_Call}, c.ParentEdgeKind())
		if assign, ok := c.Parent().Node().(*ast.AssignStmt); ok && p.acquires(call) {
			dropped = isBlank(assign.Lhs[0]) && !p.isBounded(call) || p.isForgotten(assign.Lhs[0])
		}
		if dropped {
			p.Reportf(call.Pos(), "the hold of %s is never released: call its Unlock, Release or LetExpire", types.ExprString(call.Fun))
		}
	}
})

func isBlank(e ast.Expr) bool { return types.ExprString(e) == "_" }

// unbounded matches options with which a hold lasts until it is released.
var unbounded = regexp.MustCompile(`^` + core + `rlock\.With(Wait|Polling|Watchdog|Owner)$`)

func (p checked) isBounded(call *ast.CallExpr) bool {
	return call.Ellipsis.IsValid() || slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		if p.TypesInfo.TypeOf(arg).String() != core+"rlock.Option" {
			return false
		}
		option, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok {
			return true
		}
		fn, _ := p.callee(option)
		return !unbounded.MatchString(fn.FullName())
	})
}

// isForgotten reports whether an expression is a local variable for a hold that is never ended or
// passed on.
func (p checked) isForgotten(e ast.Expr) bool {
	hold := p.variable(e)
	if hold == nil || isBlank(e) || hold.Kind() != types.LocalVar {
		return false
	}
	for use, id := range nodes[*ast.Ident](p) {
		if p.TypesInfo.Uses[id] == hold && !keeps(use) {
			return false
		}
	}
	return true
}

// keeps reports whether a use of a hold neither ends it nor passes it on.
func keeps(use inspector.Cursor) bool {
	switch parent := use.Parent().Node().(type) {
	case *ast.SelectorExpr:
		return use.Parent().ParentEdgeKind() == edge.CallExpr_Fun &&
			slices.Contains([]string{"Context", "Err", "Name", "Names", "Remaining", "Token"}, parent.Sel.Name)
	case *ast.AssignStmt:
		return use.ParentEdgeKind() == edge.AssignStmt_Lhs || isBlank(parent.Lhs[use.ParentEdgeIndex()])
	case *ast.BinaryExpr:
		return true
	}
	return false
}

var callerContext = analyzer("callercontext", "report the caller's context in functions passed to Do", func(p checked) {
	reported := map[*ast.Ident]bool{}
	for c := range nodes[*ast.FuncLit](p) {
		runner := p.runner(c)
		for use, id := range within[*ast.Ident](c) {
			if runner != "" && !reported[id] && p.isOuter(id, c.Node()) && p.isWork(use, c) && !p.assigns(c, p.path(id)) {
				reported[id] = true
				p.Reportf(id.Pos(), "%s does not end when the lock is lost: use the context that %s passes to this function", id.Name, runner)
			}
		}
	}
})

var harmless = regexp.MustCompile(`^context\.(Cause|WithoutCancel)$|^\(?\*?log/slog\.|\.Hold\)\.Context$`)

// isWork ignores deferred and concurrent calls, because they may outlive the lock.
func (p checked) isWork(use, literal inspector.Cursor) bool {
	call, ok := use.Parent().Node().(*ast.CallExpr)
	if !ok || use.ParentEdgeKind() != edge.CallExpr_Args || isApart(use, literal) || p.outerDo(use.Parent(), call) != nil {
		return false
	}
	fn, _ := p.callee(call)
	return !harmless.MatchString(fn.FullName())
}

var lockAgain = analyzer("lockagain", "report locks that wait for a hold of the same function", func(p checked) {
	for c, call := range nodes[*ast.CallExpr](p) {
		if do := p.outerDo(c, call); do != nil {
			p.waits(call, do, "the context that Do passes")
		}
		if assign, ok := c.Parent().Node().(*ast.AssignStmt); ok && p.acquires(call) {
			p.afterHold(c.Parent(), assign.Lhs, call)
		}
	}
})

func (p checked) waits(call *ast.CallExpr, first ast.Node, use string) {
	verb := "waits for"
	if fn, _ := p.callee(call); strings.HasPrefix(fn.Name(), "Try") {
		verb = "fails because of"
	}
	p.Reportf(call.Pos(), "%s %s the hold of line %d: use %s", types.ExprString(call.Fun), verb, p.Fset.Position(first.Pos()).Line, use)
}

// outerDo returns an enclosing call to Do whose function acquires the same lock again with an outer
// context.
func (p checked) outerDo(c inspector.Cursor, call *ast.CallExpr) *ast.CallExpr {
	lock, ctx := p.acquisition(call)
	for literal := range c.Enclosing((*ast.FuncLit)(nil)) {
		do, ok := literal.Parent().Node().(*ast.CallExpr)
		if lock == "" || !ok || !p.isDo(do) || isApart(c, literal) {
			break // the call may run later
		}
		isOutside := ctx == "context.Background" || p.isOuter(call.Args[0], literal.Node()) && !p.assigns(literal, ctx)
		if held, _ := p.acquisition(do); held == lock && isOutside {
			return do
		}
	}
	return nil
}

// afterHold finds a second acquisition after a statement that assigns a hold, at a point where the lock is
// known to be held.
func (p checked) afterHold(c inspector.Cursor, to []ast.Expr, first *ast.CallExpr) {
	lock, ctx := p.acquisition(first)
	id, _ := to[0].(*ast.Ident)
	hold, _ := p.TypesInfo.Defs[id].(*types.Var) // other variables may be released elsewhere
	next, ok := c.NextSibling()
	if !isBlank(to[1]) {
		next, ok = afterError(next, ok, types.ExprString(to[1])+" != nil")
	}
	if hold == nil || isBlank(id) || lock == "" || ctx == "" || p.isBounded(first) {
		return
	}
	for ; ok && !p.ends(next, hold) && !p.assigns(next, lock, ctx); next, ok = next.NextSibling() {
		if again := p.find(next, lock, ctx); again != nil {
			p.waits(again, first, hold.Name()+".Context")
			return
		}
		if p.assigns(next, p.path(id)) {
			return
		}
	}
}

func afterError(next inspector.Cursor, ok bool, failed string) (inspector.Cursor, bool) {
	for ; ok; next, ok = next.NextSibling() {
		check, isIf := next.Node().(*ast.IfStmt)
		if !isIf || check.Init != nil || check.Else != nil || !leaves(check.Body.List) {
			break
		}
		if types.ExprString(check.Cond) == failed {
			return next.NextSibling()
		}
	}
	return next, false
}

func leaves(block []ast.Stmt) bool {
	return slices.ContainsFunc(block, func(s ast.Stmt) bool {
		_, isReturn := s.(*ast.ReturnStmt)
		_, isBranch := s.(*ast.BranchStmt)
		return isReturn || isBranch
	})
}

// ends reports whether a statement may end a hold, pass it on, or find that it has ended, before the function
// returns.
func (p checked) ends(c inspector.Cursor, hold *types.Var) bool {
	for use, id := range within[*ast.Ident](c) {
		if p.TypesInfo.Uses[id] == hold && (!keeps(use) || isCheck(use)) && !isIn[*ast.DeferStmt](use, c) {
			return true
		}
	}
	return false
}

func isCheck(use inspector.Cursor) bool {
	selector, ok := use.Parent().Node().(*ast.SelectorExpr)
	_, isMethod := use.Parent().Parent().Parent().Node().(*ast.SelectorExpr) // such as hold.Context(ctx).Done
	return !ok || selector.Sel.Name == "Err" || isMethod
}

func (p checked) find(c inspector.Cursor, lock, ctx string) *ast.CallExpr {
	for at, call := range within[*ast.CallExpr](c) {
		if l, with := p.acquisition(call); l == lock && with == ctx && !isIn[*ast.FuncLit](at, c) && !isApart(at, c) {
			return call
		}
	}
	return nil
}
