package main

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.txt
var lists embed.FS

type mutant struct {
	name     string // list/description
	file     string
	old, new string // whole lines
	red      []catcher

	// A generated mutant may be caught by any of its tests, and does not have to compile.
	generated bool
}

type catcher struct {
	pkg  string
	test string // if empty, all tests of the package, which count as one
}

func (c catcher) String() string { return strings.TrimSpace(c.pkg + " " + c.test) }

func readLists(dir fs.FS) ([]mutant, error) {
	files, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		for part := range strings.SplitSeq(string(text), "\n\n") {
			m, err := parse(part)
			if err != nil {
				return nil, fmt.Errorf("%s: mutant %q: %w", file, m.name, err)
			}
			if m.file != "" {
				m.name = strings.TrimSuffix(file, ".txt") + "/" + m.name
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// parse parses one mutant. If part contains only comments, the mutant is empty.
func parse(part string) (m mutant, err error) {
	empty := true
	for line := range strings.SplitSeq(part, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		empty = false
		rest := line[1:] + "\n"
		switch line[0] {
		case '-':
			m.old += rest
		case '+':
			m.new += rest
		case ' ':
			m.old += rest
			m.new += rest
		default:
			if err = m.field(line); err != nil {
				return m, err
			}
		}
	}
	switch {
	case empty:
	case m.name == "" || m.file == "" || len(m.red) == 0:
		err = fmt.Errorf("needs a name, a file and a test")
	case m.old == "" || m.old == m.new:
		err = fmt.Errorf("changes nothing")
	}
	return m, err
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
		for test := range strings.FieldsSeq(tests) {
			m.red = append(m.red, catcher{pkg, test})
		}
	default:
		return fmt.Errorf("%q begins no line of a mutant", word)
	}
	return nil
}

func (m *mutant) list() string {
	list, _, _ := strings.Cut(m.name, "/")
	return "test/mutants/" + list + ".txt"
}

func (m *mutant) apply(text string) (string, error) {
	// The leading newline ensures that the match begins at the start of a line.
	text, old := "\n"+text, "\n"+m.old
	if n := count(text, old); n != 1 {
		return "", fmt.Errorf("text occurs %d times in %s: want once", n, m.file)
	}
	return strings.Replace(text, old, "\n"+m.new, 1)[1:], nil
}

// count is like strings.Count, but also counts overlapping matches.
func count(text, part string) (n int) {
	for at := strings.Index(text, part); at >= 0; at = strings.Index(text, part) {
		n++
		text = text[at+1:]
	}
	return n
}
