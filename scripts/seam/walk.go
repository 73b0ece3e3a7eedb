package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// contextWalk follows the context from Lock through the source.
func contextWalk(l *library) (row, error) {
	r := row{what: "ctx from Lock: stops, returns to a file left", before: "83, 56", wanted: "<= 40, <= 10"}
	f := l.function(lockRoot)
	if f == nil {
		return r, missing(lockRoot)
	}
	w := walk{lib: l, seen: map[*types.Func]bool{}}
	w.visit(f)
	stops, returns := w.stops()
	r.measured = fmt.Sprintf("%d, %d", stops, returns)
	r.detail = append(r.detail, fmt.Sprintf("%d functions in %d files", len(w.seen), stops-returns))
	for i, file := range w.path {
		if i == 0 || file != w.path[i-1] {
			r.detail = append(r.detail, file)
		}
	}
	return r, nil
}

// walk goes through each function that gets a context, once, in the order of the source.
type walk struct {
	lib  *library
	seen map[*types.Func]bool
	path []string // the file after each step
}

// visit enters f and goes through its calls, unless it was entered before. It reports
// whether it has entered f.
func (w *walk) visit(f *types.Func) bool {
	d := w.lib.decls[f]
	if d == nil || w.seen[f] {
		return false
	}
	w.seen[f] = true
	file := w.lib.file(d.fn.Pos())
	w.path = append(w.path, file)
	ast.Inspect(d.fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return isContext(d.pkg.info.TypeOf(a)) }) {
			return true
		}
		for _, callee := range w.lib.callees(d.pkg.info, call) {
			if w.visit(callee) {
				w.path = append(w.path, file) // and back
			}
		}
		return true
	})
	return true
}

// stops counts the stretches of the path that stay in one file, and those of them in a file
// that the path has left before.
func (w *walk) stops() (stops, returns int) {
	left := map[string]bool{}
	for i, file := range w.path {
		if i > 0 && file == w.path[i-1] {
			continue
		}
		stops++
		if left[file] {
			returns++
		}
		left[file] = true
	}
	return stops, returns
}

// callees returns the functions of the library that a call may run: for a method of one of
// the library's interfaces, those of all types of the library that implement it. A call of
// a function value has none.
func (l *library) callees(info *types.Info, call *ast.CallExpr) []*types.Func {
	f := called(info, call)
	if f == nil || l.decls[f] != nil || !l.ours(f) || f.Signature().Recv() == nil {
		return slices.DeleteFunc([]*types.Func{f}, func(f *types.Func) bool { return f == nil })
	}
	iface, ok := f.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	var all []*types.Func
	for _, t := range l.named {
		if types.IsInterface(t) || !types.Implements(types.NewPointer(t), iface) {
			continue
		}
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, f.Pkg(), f.Name())
		if m, ok := m.(*types.Func); ok {
			all = append(all, m)
		}
	}
	return all
}

// called returns the function or method that a call names, nil for function values.
func called(info *types.Info, call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := info.Uses[id].(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}

// isContext reports whether t is context.Context.
func isContext(t types.Type) bool {
	if t == nil {
		return false
	}
	n := namedOf(t)
	return n != nil && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" && n.Obj().Name() == "Context"
}

// sorted returns the keys of a set in order.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
