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
}

// catcher is a test that must go red.
type catcher struct {
	pkg  string // its folder
	test string
}

func (c catcher) String() string { return c.pkg + " " + c.test }

// list is all that stands in the .txt files.
type list struct {
	mutants []mutant
	byHand  map[string]string // test, and why no mutant here turns it red
}

// readLists reads every .txt file of a folder.
func readLists(dir fs.FS) (list, error) {
	all := list{byHand: map[string]string{}}
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
	var e entry
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
			e = entry{}
		}
	}
	return nil
}

// entry is one entry of a file, as it is being read.
type entry struct {
	mutant
	byHand, why string
}

func (e *entry) line(at, line string) error {
	if e.at == "" {
		e.at = at
	}
	rest := line[1:] + "\n"
	switch line[0] {
	case '-':
		e.old += rest
		return nil
	case '+':
		e.new += rest
		return nil
	case ' ':
		e.old += rest
		e.new += rest
		return nil
	}
	return e.field(line)
}

func (e *entry) field(line string) error {
	word, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch word {
	case "mutant":
		e.name = value
	case "file":
		e.file = value
	case "red":
		pkg, tests, _ := strings.Cut(value, " ")
		for _, test := range strings.Fields(tests) {
			e.red = append(e.red, catcher{pkg, test})
		}
	case "byhand":
		e.byHand = value
	case "why":
		e.why = value
	default:
		return fmt.Errorf("%q begins no line of an entry", word)
	}
	return nil
}

// add takes a complete entry in.
func (l *list) add(area string, e entry) error {
	if e.byHand != "" {
		if e.why == "" || e.name != "" {
			return fmt.Errorf("%s has no reason, or is a mutant too", e.byHand)
		}
		l.byHand[e.byHand] = e.why
		return nil
	}
	switch {
	case e.name == "" || e.file == "" || len(e.red) == 0:
		return fmt.Errorf("mutant %q lacks a name, a file or a test", e.name)
	case e.old == "" || e.old == e.new:
		return fmt.Errorf("mutant %q changes nothing", e.name)
	}
	e.name = area + "/" + e.name
	for _, other := range l.mutants {
		if other.name == e.name {
			return fmt.Errorf("%s is called %q, too", other.at, e.name)
		}
	}
	l.mutants = append(l.mutants, e.mutant)
	return nil
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
