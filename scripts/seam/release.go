package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutantLists stands for all files that list bugs to plant: they count as one.
const mutantLists = "the lists of mutants"

// releaseArguments counts the files to edit when a release gets another argument.
func releaseArguments(*library) (row, error) {
	r := row{what: "files to change the arguments of a release", before: "12", wanted: "<= 3"}
	found, err := releaseFiles()
	if err != nil {
		return r, err
	}
	lists := []string{}
	for _, f := range slices.Sorted(maps.Keys(found)) {
		if strings.Contains(path.Base(f), "mutants") || isUnder(f, []string{"test/mutants"}) {
			lists = append(lists, f)
			continue
		}
		r.detail = append(r.detail, f+": "+found[f])
	}
	if len(lists) > 0 {
		r.detail = append(r.detail, mutantLists+": "+strings.Join(lists, " "))
	}
	r.measured = fmt.Sprint(len(r.detail))
	return r, nil
}

// releaseFiles returns the files of the checkout that spell out the arguments of a release,
// each with why it counts. Tests, testdata and generated files are left out.
func releaseFiles() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || name == "scripts/seam"):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		why, err := namesRelease(name)
		if why != "" {
			found[name] = why
		}
		return err
	})
	return found, err
}

// namesRelease tells why a file spells out the arguments of a release, "" when it does not.
func namesRelease(file string) (string, error) {
	base, dir := path.Base(file), path.Dir(file)
	switch ext := path.Ext(file); {
	case ext == ".lua" && releaseScripts[strings.TrimSuffix(base, ext)] != "":
		return "the script", nil
	case ext == ".go":
		return goRelease(file)
	case ext != ".md" && ext != ".txt":
		return "", nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // a file of this checkout
	switch {
	case err != nil:
		return "", err
	case dir == "docs" && strings.Contains("\n"+string(text), "\n"+protocolHeading):
		return "the specification", nil
	case dir == "test/mutants" && mutatesRelease(string(text)):
		return "a mutant", nil
	}
	return "", nil
}

// mutatesRelease reports whether a list has a mutant of a release script, or one that
// changes a line in which such a script gets its arguments.
func mutatesRelease(list string) bool {
	for script, variable := range releaseScripts {
		if strings.Contains(list, "/"+script+".lua\n") || strings.Contains(list, "luasrc."+variable+",") {
			return true
		}
	}
	return false
}

// goRelease tells why a file of Go names the arguments of a release.
func goRelease(file string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return "", err
	}
	why := ""
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if declaresRelease(n) {
				why = "declares the script"
			}
		case *ast.InterfaceType:
			if describesRelease(n) {
				why = "an interface with an argument of the script"
			}
		case *ast.SelectorExpr:
			// The text alone says nothing of arguments.
			if n.Sel.Name == "Text" && isReleaseScript(n.X) {
				return false
			}
			if isReleaseScript(n) && why == "" {
				why = "fills in the arguments"
			}
		}
		return true
	})
	return why, nil
}

// isReleaseScript reports whether an expression is the variable of a release script.
func isReleaseScript(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == path.Base(scriptsPackage) && slices.Contains(slices.Collect(maps.Values(releaseScripts)), s.Sel.Name)
}

// declaresRelease reports whether a call makes a release script of its text.
func declaresRelease(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "NewScript" || len(call.Args) == 0 {
		return false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	return ok && releaseScripts[strings.Trim(lit.Value, `"`)] != ""
}

// describesRelease reports whether an interface has a method that releases and is given an
// argument of the script: one that is no pointer, such as a count.
func describesRelease(t *ast.InterfaceType) bool {
	return slices.ContainsFunc(t.Methods.List, func(m *ast.Field) bool {
		fn, ok := m.Type.(*ast.FuncType)
		if !ok || len(m.Names) == 0 || m.Names[0].Name != releaseMethod {
			return false
		}
		call, plain := false, false
		for _, p := range fn.Params.List {
			switch t := p.Type.(type) {
			case *ast.StarExpr:
				s, ok := t.X.(*ast.SelectorExpr)
				call = call || ok && s.Sel.Name == "Call"
			case *ast.Ident:
				plain = true
			}
		}
		return call && plain
	})
}
