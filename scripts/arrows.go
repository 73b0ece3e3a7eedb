//go:build ignore

// Program arrows prints imports of packages that are higher up in the list of floors. It fails if
// there are any, if a folder is not on a floor, or if only tests import an internal package outside
// of internal/test. Imports in tests do not count. Run it from the root of the repository:
//
//	go run scripts/arrows.go
package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module = "github.com/redlatch/redlatch"
	most   = 0
)

// floors are listed from the top down. A package is on the floor with the longest matching folder.
// The folder "." matches only the root package. The linter checks the order inside internal.
var floors = [][]string{
	{"test", "bench", "examples", "scripts", "tools"},
	{"internal/test"},
	{"cmd"},
	{"redlatchui"},
	{"internal/tool"},
	{"adapter", "gocronredlatch", "otelredlatch", "promredlatch", "redlatchvet"},
	{"admin"},
	{"rmultilock", "leader"},
	{"rfairlock", "rfencedlock", "rreadwritelock", "rlatch", "rsemaphore"},
	{"rlock"},
	{"."},
	{"pubsub"},
	{"internal"},
	{"embedded", "transport", "codec", "fence", "internal/builtin", "internal/clock", "internal/limits", "internal/protocol"},
}

// floor returns the index of a package's floor. The top floor is 0.
func floor(pkg string) (int, bool) {
	at, longest := 0, ""
	for i, folders := range floors {
		for _, f := range folders {
			if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > len(longest) {
				at, longest = i, f
			}
		}
	}
	return at, longest != ""
}

func imports() (map[string]map[string]bool, error) {
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := path.Dir(filepath.ToSlash(name))
		if all[from] == nil {
			all[from] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			if to, err := strconv.Unquote(spec.Path.Value); err == nil && to == module {
				all[from]["."] = true
			} else if to, ours := strings.CutPrefix(to, module+"/"); ours {
				all[from][to] = true
			}
		}
		return nil
	})
	return all, err
}

// unused returns the internal packages that only tests import.
func unused(all map[string]map[string]bool) []string {
	used := map[string]bool{}
	for from, tos := range all {
		if at, _ := floor(from); at >= 2 {
			maps.Copy(used, tos)
		}
	}
	var names []string
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		if at, _ := floor(pkg); at >= 2 && strings.HasPrefix(pkg, "internal/") && !used[pkg] {
			names = append(names, pkg)
		}
	}
	return names
}

func main() {
	all, err := imports()
	if err != nil || len(all["."]) == 0 {
		fmt.Fprintln(os.Stderr, "arrows: no imports found; run it from the root:", err)
		os.Exit(2)
	}
	arrows, up, lost := 0, 0, 0
	for _, from := range slices.Sorted(maps.Keys(all)) {
		below, placed := floor(from)
		if !placed {
			lost++
			fmt.Printf("%s is not on a floor: add it to scripts/arrows.go\n", from)
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(all[from])) {
			arrows++
			if above, _ := floor(to); above < below {
				up++
				fmt.Printf("%s imports %s from a higher floor\n", from, to)
			}
		}
	}
	for _, pkg := range unused(all) {
		lost++
		fmt.Printf("%s is imported only by tests: move it below internal/test\n", pkg)
	}
	fmt.Printf("arrows: %d imports between packages, %d upwards (limit %d)\n", arrows, up, most)
	if up > most || lost > 0 {
		os.Exit(1)
	}
}
