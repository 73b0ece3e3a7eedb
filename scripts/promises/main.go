package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	source = "test/promises.txt"
	table  = "test/promises.md"
	bugs   = "test/mutants/*.txt"
)

func main() {
	write := flag.Bool("write", false, "write "+table)
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	text, err := render(os.DirFS("."))
	if err != nil {
		return err
	}
	if write {
		return replace(text)
	}
	if old, err := os.ReadFile(table); err != nil || string(old) != text {
		return errors.Join(err, fmt.Errorf("%s is not current: go run ./scripts/promises -write", table))
	}
	return nil
}

// replace writes the table.
func replace(text string) error {
	file, err := os.Create(table)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// row is a promise with the tests that hold it.
type row struct {
	promise string
	tests   []string
	changes string // that were seen to turn them red; empty: the planted bugs say it
}

// needsBug are the promises that a planted bug must break: the scenarios, and Unlock.
var needsBug = regexp.MustCompile(`\bU[0-9]+\b|^Unlock$`)

// noChange is what a row says that puts its change off.
var noChange = regexp.MustCompile(`(?i)\bnot (planted )?yet\b|^(to ?do|tbd|later|by hand|none|-|–)$`)

// check returns why the row holds nothing, nil when it holds.
func (r *row) check(planted map[string][]string) error {
	bugs := r.bugs(planted)
	switch {
	case noChange.MatchString(r.changes):
		return fmt.Errorf("%s: %s: %q is no change", source, r.promise, r.changes)
	case len(bugs) == 0 && needsBug.MatchString(r.promise):
		return fmt.Errorf("%s: %s: no planted bug turns %s red", source, r.promise, strings.Join(r.tests, " or "))
	case len(bugs) == 0 && r.changes == "":
		return fmt.Errorf("%s: %s: neither a planted bug nor a change turns it red", source, r.promise)
	}
	return nil
}

// bugs returns the names of the planted bugs that turn a test of the row red.
func (r *row) bugs(planted map[string][]string) (names []string) {
	for _, test := range r.tests {
		for _, name := range planted[test] {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// render returns the table that belongs to a checkout.
func render(checkout fs.FS) (string, error) {
	rows, err := promises(checkout)
	if err != nil {
		return "", err
	}
	planted, err := plantedBugs(checkout)
	if err != nil {
		return "", err
	}
	folders, err := tests(checkout)
	if err != nil {
		return "", err
	}
	var wrong []error
	named := map[string]bool{}
	for _, r := range rows {
		for _, test := range r.tests {
			named[test] = true
			if len(folders[test]) == 0 {
				wrong = append(wrong, fmt.Errorf("%s: %s: there is no %s", source, r.promise, test))
			}
		}
		wrong = append(wrong, r.check(planted))
	}
	for _, test := range slices.Sorted(maps.Keys(planted)) {
		if len(folders[test]) == 0 {
			wrong = append(wrong, fmt.Errorf("%s: there is no %s", bugs, test))
		} else if !named[test] {
			rows = append(rows, row{promise: "–", tests: []string{test}})
		}
	}
	return markdown(rows, planted, folders), errors.Join(wrong...)
}

// promises reads the rows of the source.
func promises(checkout fs.FS) (rows []row, _ error) {
	text, err := fs.ReadFile(checkout, source)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) == 2 {
			cells = append(cells, "")
		}
		if len(cells) != 3 || len(strings.Fields(cells[1])) == 0 {
			return nil, fmt.Errorf("%s:%d: want promise | tests, or promise | tests | changes", source, i+1)
		}
		rows = append(rows, row{cells[0], strings.Fields(cells[1]), strings.TrimSpace(cells[2])})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no promises", source)
	}
	return rows, nil
}

// plantedBugs returns the names of the planted bugs that each test must notice.
func plantedBugs(checkout fs.FS) (map[string][]string, error) {
	files, err := fs.Glob(checkout, bugs)
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there is no %s", bugs))
	}
	all := map[string][]string{}
	for _, file := range files {
		text, err := fs.ReadFile(checkout, file)
		if err != nil {
			return nil, err
		}
		area, name := strings.TrimSuffix(path.Base(file), ".txt"), ""
		for line := range strings.Lines(string(text)) {
			word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.HasPrefix(line, "mutant "):
				name = area + "/" + strings.TrimSpace(value)
			case strings.HasPrefix(line, "red ") && word == "red":
				for _, test := range strings.Fields(value)[1:] {
					all[test] = append(all[test], name)
				}
			}
		}
	}
	return all, nil
}

var declaration = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// tests returns the folders that declare each test.
func tests(checkout fs.FS) (map[string][]string, error) {
	all := map[string][]string{}
	err := fs.WalkDir(checkout, ".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "target", "testdata"}, name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(checkout, file)
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			if folder := path.Dir(file); !slices.Contains(all[m[1]], folder) {
				all[m[1]] = append(all[m[1]], folder)
			}
		}
		return err
	})
	return all, err
}

// markdown writes the rows as a page.
func markdown(rows []row, planted, folders map[string][]string) string {
	var b strings.Builder
	b.WriteString("<!-- generated by go run ./scripts/promises -write; do not edit -->\n\n")
	b.WriteString("# Promises and their tests\n\n")
	b.WriteString("Made from `promises.txt` and the planted bugs in `mutants`. U1 to U45 are the scenarios of\n")
	b.WriteString("[reliability.md](../docs/reliability.md#scenarios). A planted bug is named as `make mutants MUTANTS=` takes it.\n")
	b.WriteString("Changes were seen to turn a test red once; nothing repeats that.\n\n")
	b.WriteString("| promise | test | planted bugs | changes |\n|---|---|---|---|\n")
	for _, r := range rows {
		var where []string
		for _, test := range r.tests {
			where = append(where, fmt.Sprintf("`%s` in %s", test, strings.Join(folders[test], ", ")))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.promise, strings.Join(where, "; "), strings.Join(r.bugs(planted), "; "), r.changes)
	}
	return b.String()
}
