package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// realServers are the functions of package redistest that start a server of a process of its
// own. A test that calls one runs on real time.
var realServers = []string{
	"Start", "Shared", "EachServer", "StartValkey", "StartReplica", "StartCluster", "StartSentinels",
}

// calls are what a function of a package's tests calls.
type calls struct {
	fake, real bool
	local      []string // functions of the same package
}

// fakeTests reads the tests of a package and returns those on fake time: a test is one when
// it calls synctest.Test, itself or through functions of its package, and starts no real
// server. It reports, too, whether there are other tests.
func fakeTests(folder fs.FS) (names []string, others bool, err error) {
	all := map[string]calls{}
	files, err := fs.Glob(folder, "*_test.go")
	if err != nil {
		return nil, false, err
	}
	for _, file := range files {
		if err = read(folder, file, all); err != nil {
			return nil, false, err
		}
	}
	for name := range all {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") && !strings.HasPrefix(name, "Example") || name == "TestMain" {
			continue
		}
		if found := reach(all, name, map[string]bool{}); found.fake && !found.real {
			names = append(names, name)
		} else {
			others = true
		}
	}
	slices.Sort(names)
	return names, others, nil
}

// read notes what the functions of a file call.
func read(folder fs.FS, file string, all map[string]calls) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
			all[f.Name.Name] = callsOf(f.Body)
		}
	}
	return nil
}

// callsOf takes functions that are handed on for calls, too.
func callsOf(body ast.Node) (c calls) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			c.fake = c.fake || ok && pkg.Name == "synctest" && n.Sel.Name == "Test"
			c.real = c.real || ok && pkg.Name == "redistest" && slices.Contains(realServers, n.Sel.Name)
		case *ast.Ident:
			c.local = append(c.local, n.Name)
		}
		return true
	})
	return c
}

// reach is what a function calls in the end.
func reach(all map[string]calls, name string, been map[string]bool) calls {
	f, known := all[name]
	if !known || been[name] {
		return calls{}
	}
	been[name] = true
	for _, next := range f.local {
		more := reach(all, next, been)
		f.fake, f.real = f.fake || more.fake, f.real || more.real
	}
	return f
}
