package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// onePath counts the files and functions of the library that run while one free lock is taken.
func onePath(l *library) (row, error) {
	r := row{what: "files / functions of one uncontended Lock", before: "38 / 127", wanted: "<= 20 / <= 70"}
	profile, err := lockProfile()
	if err != nil {
		return r, err
	}
	ran, err := l.executed(profile)
	if err != nil {
		return r, err
	}
	files := map[string]int{}
	for d := range ran {
		files[l.file(d.fn.Pos())]++
	}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		r.detail = append(r.detail, fmt.Sprintf("%s: %d functions", f, files[f]))
	}
	r.measured = fmt.Sprintf("%d / %d", len(files), len(ran))
	return r, nil
}

// lockProfile builds and runs onelock, and returns its coverage as text.
func lockProfile() (profile string, err error) {
	dir, err := os.MkdirTemp("", "seam")
	if err != nil {
		return "", err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	program, counters, rest := filepath.Join(dir, "onelock"), filepath.Join(dir, "counters"), filepath.Join(dir, "rest")
	for _, d := range []string{counters, rest} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", err
		}
	}
	if _, err := run(nil, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...",
		"-o", program, "./scripts/seam/onelock"); err != nil {
		return "", err
	}
	// What the program counts until it ends goes to a folder that is not read.
	if _, err := run([]string{"GOCOVERDIR=" + rest}, program, counters); err != nil {
		return "", err
	}
	text := filepath.Join(dir, "profile")
	if _, err := run(nil, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+text); err != nil {
		return "", err
	}
	out, err := os.ReadFile(text) //nolint:gosec // made above
	return string(out), err
}

// executed returns the functions of the library with a block that ran. A function literal is
// part of the function that it stands in.
func (l *library) executed(profile string) (map[*decl]bool, error) {
	byFile := map[string][]*decl{}
	for _, d := range l.decls {
		f := l.file(d.fn.Pos())
		byFile[f] = append(byFile[f], d)
	}
	ran := map[*decl]bool{}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		file, at, count, err := block(line)
		if err != nil {
			return nil, err
		}
		if !count {
			continue
		}
		for _, d := range byFile[file] {
			if l.spans(d.fn, at) {
				ran[d] = true
			}
		}
	}
	return ran, nil
}

// place is a line and a column.
type place struct{ line, column int }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// spans reports whether a place is inside a function.
func (l *library) spans(fn *ast.FuncDecl, at place) bool {
	from, to := l.fset.Position(fn.Pos()), l.fset.Position(fn.End())
	return at.compare(place{from.Line, from.Column}) >= 0 && at.compare(place{to.Line, to.Column}) < 0
}

// block reads a line of a profile: path/file.go:line.column,line.column statements count.
func block(line string) (file string, at place, ran bool, err error) {
	fields := strings.Fields(line)
	colon := strings.LastIndex(line, ":")
	if len(fields) != 3 || colon < 0 {
		return "", at, false, fmt.Errorf("no line of a profile: %q", line)
	}
	begin, _, _ := strings.Cut(line[colon+1:], ",")
	number, column, _ := strings.Cut(begin, ".")
	var e1, e2 error
	at.line, e1 = strconv.Atoi(number)
	at.column, e2 = strconv.Atoi(column)
	return below(line[:colon]), at, fields[2] != "0", cmp.Or(e1, e2)
}
