package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// kindsNamed counts the files of the library that fix what a kind of lock decides.
func kindsNamed(l *library) (row, error) {
	r := row{what: "files / packages that name a kind, outside kinds", before: "(about 5 files)", wanted: "0 / 0"}
	n := l.typeNamed(kindInterface)
	if n == nil {
		return r, missing(kindInterface)
	}
	kind, ok := n.Underlying().(*types.Interface)
	if !ok {
		return r, fmt.Errorf("%v is not an interface", kindInterface)
	}
	fair, err := fairLines()
	if err != nil {
		return r, err
	}
	folders := map[string]bool{}
	for _, p := range l.pkgs {
		if p.path == scriptsPackage || slices.Contains(kindParts, p.path) {
			continue
		}
		for _, file := range p.files {
			name := l.file(file.Pos())
			if _, ok := fair[name]; ok || implements(p, file, kind) {
				continue
			}
			if why := l.namesKind(p, file); len(why) > 0 {
				folders[path.Dir(name)] = true
				r.detail = append(r.detail, name+": "+strings.Join(why, ", "))
			}
		}
	}
	slices.Sort(r.detail)
	r.measured = fmt.Sprintf("%d / %d", len(r.detail), len(folders))
	return r, nil
}

// implements reports whether a file declares a type that is a kind of lock.
func implements(p *pkg, file *ast.File, kind *types.Interface) bool {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			if s, ok := s.(*ast.TypeSpec); ok {
				t := p.info.Defs[s.Name].Type()
				if !types.IsInterface(t) && types.Implements(types.NewPointer(t), kind) {
					return true
				}
			}
		}
	}
	return false
}

// namesKind returns what a file uses that only kinds of lock should: scripts, the decoders of
// their replies, the question whether a kind queues, and the name of a kind.
func (l *library) namesKind(p *pkg, file *ast.File) []string {
	why := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Value == `"fair"` || n.Value == `"`+module+"/"+fairPackage+`"` {
				why[n.Value] = true
			}
		case *ast.Ident:
			if o := p.info.Uses[n]; l.ours(o) && l.belongsToKind(o) {
				why[o.Pkg().Name()+"."+o.Name()] = true
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(why))
}

// belongsToKind reports whether only a kind of lock should use an object.
func (l *library) belongsToKind(o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		decodes := slices.Contains(decoders, name{below(o.Pkg().Path()), receiver(o), o.Name()})
		return decodes || o.Name() == queuesMethod && o.Signature().Recv() != nil
	case *types.Var:
		script := namedOf(o.Type())
		return below(o.Pkg().Path()) == scriptsPackage && script != nil && script.Obj().Name() == "Script"
	}
	return false
}
