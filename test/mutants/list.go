package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.txt
var lists embed.FS

// mutant is one planted bug.
type mutant struct {
	name     string // area/what is wrong
	at       string // where it stands, for errors
	file     string
	old, new string // whole lines
	red      []catcher

	// generated mutants are caught by any of their tests, and need not compile.
	generated bool
}

// catcher is a test that must go red.
type catcher struct {
	pkg  string // its folder
	test string // empty: all of the package, which count as one
}

func (c catcher) String() string { return strings.TrimSpace(c.pkg + " " + c.test) }

// pattern is the regular expression of the flag -test.run.
func (c catcher) pattern() string {
	if c.test == "" {
		return ""
	}
	return "^" + c.test + "$"
}

// level is that of package testlevel. A test that is named must not be skipped. Of a whole
// package the tests run that take no minutes.
func (c catcher) level() string {
	if c.test == "" {
		return ""
	}
	return "all"
}

// list is all that stands in the .txt files.
type list struct{ mutants []mutant }

// readLists reads every .txt file of a folder.
func readLists(dir fs.FS) (list, error) {
	var all list
	files, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return all, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return all, err
		}
		if err := all.read(file, string(text)); err != nil {
			return all, err
		}
	}
	return all, nil
}

// read adds one file's entries.
func (l *list) read(file, text string) error {
	var e mutant
	for i, line := range strings.Split(text+"\n", "\n") {
		at := fmt.Sprintf("%s:%d", file, i+1)
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			if err := e.line(at, line); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		case e.at != "":
			if err := l.add(strings.TrimSuffix(path.Base(file), ".txt"), e); err != nil {
				return fmt.Errorf("%s: %w", e.at, err)
			}
			e = mutant{}
		}
	}
	return nil
}

// line adds one line of an entry to the mutant that it describes.
func (m *mutant) line(at, line string) error {
	if m.at == "" {
		m.at = at
	}
	rest := line[1:] + "\n"
	switch line[0] {
	case '-':
		m.old += rest
		return nil
	case '+':
		m.new += rest
		return nil
	case ' ':
		m.old += rest
		m.new += rest
		return nil
	}
	return m.field(line)
}

func (m *mutant) field(line string) error {
	word, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch word {
	case "mutant":
		m.name = value
	case "file":
		m.file = value
	case "red":
		pkg, tests, _ := strings.Cut(value, " ")
		for _, test := range strings.Fields(tests) {
			m.red = append(m.red, catcher{pkg, test})
		}
	default:
		return fmt.Errorf("%q begins no line of an entry", word)
	}
	return nil
}

// add takes a complete entry in.
func (l *list) add(area string, m mutant) error {
	switch {
	case m.name == "" || m.file == "" || len(m.red) == 0:
		return fmt.Errorf("mutant %q lacks a name, a file or a test", m.name)
	case m.old == "" || m.old == m.new:
		return fmt.Errorf("mutant %q changes nothing", m.name)
	}
	m.name = area + "/" + m.name
	for _, other := range l.mutants {
		if other.name == m.name {
			return fmt.Errorf("%s is called %q, too", other.at, m.name)
		}
	}
	l.mutants = append(l.mutants, m)
	return nil
}

// list returns the file that the mutant stands in.
func (m *mutant) list() string {
	area, _, _ := strings.Cut(m.name, "/")
	return "test/mutants/" + area + ".txt"
}

// apply returns the text with the mutant in it.
func (m *mutant) apply(text string) (string, error) {
	// The line feed in front makes both begin where a line does.
	text, old := "\n"+text, "\n"+m.old
	if n := count(text, old); n != 1 {
		return "", fmt.Errorf("what it changes occurs %d times in %s, not once", n, m.file)
	}
	return strings.Replace(text, old, "\n"+m.new, 1)[1:], nil
}

// count is strings.Count for places that may overlap.
func count(text, part string) (n int) {
	for at := strings.Index(text, part); at >= 0; at = strings.Index(text, part) {
		n++
		text = text[at+1:]
	}
	return n
}
