package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fairOutside counts the lines of the fair lock that are not in its public package.
func fairOutside(*library) (row, error) {
	r := row{what: "lines of the fair lock outside " + fairPackage, before: "3078 of 3333, 7 packages", wanted: "see next row"}
	files, err := fairLines()
	if err != nil {
		return r, err
	}
	all, out := 0, 0
	folders := map[string]int{}
	for f, n := range files {
		all += n
		folders[path.Dir(f)] += n
		if path.Dir(f) != fairPackage {
			out += n
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		r.detail = append(r.detail, fmt.Sprintf("%s: %d", dir, folders[dir]))
	}
	r.measured = fmt.Sprintf("%d of %d, %d packages", out, all, len(folders))
	return r, nil
}

// fairMixed counts the lines of the fair lock in packages that hold other code, too.
func fairMixed(*library) (row, error) {
	r := row{what: "- in packages with other code (scripts of that)", before: "2763 (720)", wanted: "0"}
	files, err := fairLines()
	if err != nil {
		return r, err
	}
	mixed, scripts := 0, 0
	for _, f := range slices.Sorted(maps.Keys(files)) {
		own, err := wholly(path.Dir(f), files)
		if err != nil {
			return r, err
		}
		if own {
			continue
		}
		mixed += files[f]
		if path.Ext(f) == ".lua" {
			scripts += files[f]
		}
		r.detail = append(r.detail, fmt.Sprintf("%s: %d", f, files[f]))
	}
	r.measured = fmt.Sprintf("%d (%d)", mixed, scripts)
	return r, nil
}

// fairLines returns the number of lines of each file of the fair lock.
func fairLines() (map[string]int, error) {
	files := map[string]int{}
	for _, pattern := range fairFiles {
		found, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f) //nolint:gosec // a file of this checkout
			if err != nil {
				return nil, err
			}
			files[filepath.ToSlash(f)] = strings.Count(string(text), "\n")
		}
	}
	return files, nil
}

// wholly reports whether all code of a folder, but for its tests, is among the files.
func wholly(dir string, files map[string]int) (bool, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	for _, e := range entries {
		ext := path.Ext(e.Name())
		code := ext == ".go" && !strings.HasSuffix(e.Name(), "_test.go") || ext == ".lua"
		if _, listed := files[path.Join(dir, e.Name())]; code && !listed {
			return false, err
		}
	}
	return true, err
}
