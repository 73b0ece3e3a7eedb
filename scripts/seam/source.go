package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package of the library, parsed and type-checked without its tests.
type pkg struct {
	path  string // below the module, "." for the root
	types *types.Package
	files []*ast.File
	info  *types.Info
}

// library is the code that users compile.
type library struct {
	fset  *token.FileSet
	root  string // the folder of the module
	pkgs  []*pkg // a package comes after those that it imports
	decls map[*types.Func]*decl
	named []*types.Named // types that are declared in the library
}

// decl is where a function is declared.
type decl struct {
	pkg *pkg
	fn  *ast.FuncDecl
}

// listed is what go list tells of a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	Module                  *struct{ Path string }
}

// loadLibrary type-checks the packages that users compile. The go command supplies export
// data of all other packages.
func loadLibrary() (*library, error) {
	roots, err := publicPackages()
	if err != nil {
		return nil, err
	}
	args := append([]string{"list", "-deps", "-export", "-json=Dir,ImportPath,Export,GoFiles,Module"}, roots...)
	out, err := run(nil, "go", args...)
	if err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	l := &library{fset: token.NewFileSet(), root: root, decls: map[*types.Func]*decl{}}
	return l, l.load(json.NewDecoder(bytes.NewReader(out)))
}

// publicPackages returns the packages of the module that programs may import.
func publicPackages() ([]string, error) {
	out, err := run(nil, "go", "list", "./...")
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, p := range strings.Fields(string(out)) {
		if rel := below(p); !strings.Contains("/"+rel+"/", "/internal/") && !isUnder(rel, notLibrary) {
			roots = append(roots, p)
		}
	}
	return roots, nil
}

// load reads the packages in the order in which go list prints them: imports first.
func (l *library) load(list *json.Decoder) error {
	exports := map[string]string{}
	outside := importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	imports := importFunc(func(path string) (*types.Package, error) {
		for _, p := range l.pkgs {
			if p.types.Path() == path {
				return p.types, nil
			}
		}
		return outside.Import(path)
	})
	for {
		var p listed
		switch err := list.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		exports[p.ImportPath] = p.Export
		if p.Module == nil || p.Module.Path != module {
			continue
		}
		files, err := l.parse(&p)
		if err != nil {
			return err
		}
		if err := l.check(p.ImportPath, files, imports); err != nil {
			return err
		}
	}
}

// importFunc makes a types.Importer of a function.
type importFunc func(path string) (*types.Package, error)

// Import is part of types.Importer.
func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }

// parse reads the files of a package.
func (l *library) parse(p *listed) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// check type-checks a package and adds it to the library.
func (l *library) check(path string, files []*ast.File, imports types.Importer) error {
	p := &pkg{path: below(path), files: files, info: &types.Info{
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{},
	}}
	var err error
	if p.types, err = (&types.Config{Importer: imports}).Check(path, l.fset, files, p.info); err != nil {
		return err
	}
	l.pkgs = append(l.pkgs, p)
	l.index(p)
	return nil
}

// index notes the functions and the types that a package declares.
func (l *library) index(p *pkg) {
	for _, file := range p.files {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				if f, ok := p.info.Defs[fn.Name].(*types.Func); ok {
					l.decls[f] = &decl{p, fn}
				}
			}
		}
	}
	for _, name := range p.types.Scope().Names() {
		if t, ok := p.types.Scope().Lookup(name).(*types.TypeName); ok && !t.IsAlias() {
			if n, ok := t.Type().(*types.Named); ok {
				l.named = append(l.named, n)
			}
		}
	}
}

// file returns the name of the file that holds pos, from the root of the module.
func (l *library) file(pos token.Pos) string {
	name := l.fset.Position(pos).Filename
	if rel, err := filepath.Rel(l.root, name); err == nil {
		return filepath.ToSlash(rel)
	}
	return name
}

// typeNamed returns the type that a package declares, nil when there is none.
func (l *library) typeNamed(n name) *types.Named {
	i := slices.IndexFunc(l.named, func(t *types.Named) bool {
		return below(t.Obj().Pkg().Path()) == n.pkg && t.Obj().Name() == n.typ
	})
	if i < 0 {
		return nil
	}
	return l.named[i]
}

// function returns the function or method that n names, nil when there is none.
func (l *library) function(n name) *types.Func {
	for f := range l.decls {
		if below(f.Pkg().Path()) == n.pkg && f.Name() == n.fn && receiver(f) == n.typ {
			return f
		}
	}
	return nil
}

// ours reports whether the library declares the object.
func (l *library) ours(o types.Object) bool {
	return o != nil && o.Pkg() != nil && slices.ContainsFunc(l.pkgs, func(p *pkg) bool { return p.types == o.Pkg() })
}

// receiver returns the name of the type that f is a method of, "" for a function.
func receiver(f *types.Func) string {
	recv := f.Signature().Recv()
	if recv == nil {
		return ""
	}
	if n := namedOf(recv.Type()); n != nil {
		return n.Obj().Name()
	}
	return ""
}

// namedOf returns the named type that t is or points to, nil for others.
func namedOf(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	if n != nil {
		return n.Origin()
	}
	return nil
}

// below returns a path below the module, "." for the module itself.
func below(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// isUnder reports whether a path is one of the folders or below one of them.
func isUnder(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// run runs a program with additional environment, and returns what it prints.
func run(env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...) //nolint:gosec // the go command, or what it has built
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, errs.Bytes())
	}
	return out, nil
}

// at returns where pos is, as file:line.
func (l *library) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", l.file(pos), l.fset.Position(pos).Line)
}
