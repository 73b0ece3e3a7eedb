//go:build ignore

// Program arrows prints the imports that point upwards: from a folder to one that stands
// above it in the list of floors below. It fails when there are any, when a
// folder is on no floor, and when a package of internal is for tests alone. Tests are left out: they may reach for a server. Run it from
// the root:
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

// floors are the folders of the repository, from the top floor down. A package is on the
// floor of the longest matching folder; "." is the root alone. The linter holds the order
// of the packages inside internal.
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

// floor returns the number of a package's floor, 0 at the top.
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

// imports returns, for each package of the checkout, what it imports of this module and of
// the nested ones.
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

// unused returns the packages below internal that the product does not import: those belong
// below internal/test. The product is what is below the two floors of tests.
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
			fmt.Printf("%s is on no floor: add it to scripts/arrows.go\n", from)
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(all[from])) {
			arrows++
			if above, _ := floor(to); above < below {
				up++
				fmt.Printf("%s imports %s, which stands above it\n", from, to)
			}
		}
	}
	for _, pkg := range unused(all) {
		lost++
		fmt.Printf("%s is imported by tests alone: it belongs below internal/test\n", pkg)
	}
	fmt.Printf("arrows: %d between packages, %d upwards (at most %d)\n", arrows, up, most)
	if up > most || lost > 0 {
		os.Exit(1)
	}
}
