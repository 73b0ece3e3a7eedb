package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// loopKnowledge counts the types and fields that the wait loop uses.
func loopKnowledge(l *library) (row, error) {
	r := row{what: "types, fields to know for the wait loop", before: "29, 76", wanted: "<= 14, <= 40"}
	root := l.function(loopRoot)
	if root == nil {
		return r, missing(loopRoot)
	}
	k := knowledge{lib: l, types: map[string]bool{}, fields: map[string]bool{}}
	loop := map[*types.Func]bool{}
	l.reach(root, loop)
	lines := 0
	for f := range loop {
		d := l.decls[f]
		k.learn(d)
		lines += l.fset.Position(d.fn.End()).Line - l.fset.Position(d.fn.Pos()).Line + 1
	}
	r.measured = fmt.Sprintf("%d, %d", len(k.types), len(k.fields))
	r.detail = []string{
		fmt.Sprintf("%d methods, %d lines", len(loop), lines),
		"types: " + strings.Join(sorted(k.types), " "),
		"fields: " + strings.Join(sorted(k.fields), " "),
	}
	return r, nil
}

// reach adds f and the methods of loopTypes that it refers to, directly or through others.
func (l *library) reach(f *types.Func, into map[*types.Func]bool) {
	d := l.decls[f]
	if d == nil || into[f] || d.pkg.path != loopRoot.pkg || !slices.Contains(loopTypes, receiver(f)) {
		return
	}
	into[f] = true
	ast.Inspect(d.fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if g, ok := d.pkg.info.Uses[id].(*types.Func); ok {
				l.reach(g.Origin(), into)
			}
		}
		return true
	})
}

// knowledge is what a reader of some functions has to know.
type knowledge struct {
	lib           *library
	types, fields map[string]bool
}

// learn adds what one function uses: each named type of the library that an expression has
// or points to, each field that it selects, and the type that declares the field.
func (k *knowledge) learn(d *decl) {
	ast.Inspect(d.fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			k.object(d.pkg.info.ObjectOf(n))
		case ast.Expr:
			k.typ(d.pkg.info.TypeOf(n))
		}
		return true
	})
}

func (k *knowledge) object(o types.Object) {
	switch o := o.(type) {
	case *types.TypeName:
		k.typ(o.Type())
	case *types.Var:
		k.typ(o.Type())
		if !o.IsField() || !k.lib.ours(o) {
			return
		}
		owner := k.lib.owner(o.Origin())
		if owner == nil {
			k.fields[o.Pkg().Name()+".?."+o.Name()] = true // of a struct without a name
			return
		}
		k.typ(owner)
		k.fields[typeName(owner)+"."+o.Name()] = true
	}
}

func (k *knowledge) typ(t types.Type) {
	if t == nil {
		return
	}
	if n := namedOf(t); n != nil && k.lib.ours(n.Obj()) {
		k.types[typeName(n)] = true
	}
}

// typeName is a type's name behind that of its package.
func typeName(n *types.Named) string { return n.Obj().Pkg().Name() + "." + n.Obj().Name() }

// owner returns the named struct that declares a field, nil when it has no name.
func (l *library) owner(field *types.Var) *types.Named {
	for _, t := range l.named {
		s, ok := t.Underlying().(*types.Struct)
		for i := 0; ok && i < s.NumFields(); i++ {
			if s.Field(i) == field {
				return t
			}
		}
	}
	return nil
}

// stateFields counts the fields of the struct that holds the state of one call of Lock.
func stateFields(l *library) (row, error) {
	r := row{what: "fields of " + loopState.typ + " (with nested structs)", before: "22", wanted: "<= 10"}
	t := l.typeNamed(loopState)
	if t == nil {
		return r, missing(loopState)
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return r, fmt.Errorf("%v is not a struct", loopState)
	}
	r.measured = fmt.Sprintf("%d (%d)", s.NumFields(), l.leaves(s))
	for i := range s.NumFields() {
		r.detail = append(r.detail, s.Field(i).Name())
	}
	return r, nil
}

// leaves counts the fields of a struct. A field that is a struct of the same package counts
// as the fields of that.
func (l *library) leaves(s *types.Struct) int {
	n := 0
	for i := range s.NumFields() {
		f := s.Field(i)
		named := namedOf(f.Type())
		_, pointer := types.Unalias(f.Type()).(*types.Pointer)
		inner, ok := f.Type().Underlying().(*types.Struct)
		if ok && !pointer && (named == nil || named.Obj().Pkg() == f.Pkg()) {
			n += l.leaves(inner)
			continue
		}
		n++
	}
	return n
}

// engineMethods counts the methods of the engine.
func engineMethods(l *library) (row, error) {
	r := row{what: "methods of " + engine.typ, before: "63", wanted: "<= 25"}
	t := l.typeNamed(engine)
	if t == nil {
		return r, missing(engine)
	}
	for m := range t.Methods() {
		r.detail = append(r.detail, m.Name())
	}
	r.measured = fmt.Sprint(t.NumMethods())
	return r, nil
}

// queuesCalls counts the calls that ask whether a kind has a queue on the server.
func queuesCalls(l *library) (row, error) {
	r := row{what: "calls of " + queuesMethod + "() in " + queuesIn, before: "11", wanted: "0"}
	for f, d := range l.decls {
		if below(f.Pkg().Path()) != queuesIn {
			continue
		}
		ast.Inspect(d.fn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if m := called(d.pkg.info, call); m != nil && m.Name() == queuesMethod {
					r.detail = append(r.detail, l.at(call.Pos()))
				}
			}
			return true
		})
	}
	slices.Sort(r.detail)
	r.measured = fmt.Sprint(len(r.detail))
	return r, nil
}
