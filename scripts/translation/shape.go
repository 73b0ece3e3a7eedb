package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// section is what a part of a document, from one heading to the next, has besides
// prose.
type section struct {
	title string
	level int
	// code has the blocks of code, byte for byte.
	code []string
	// tables has each table's shape.
	tables []string
	// paragraphs and items count.
	paragraphs, items int
	// links and spans are where links lead and the code in the prose, in any order.
	links, spans map[string]int
}

var (
	heading = regexp.MustCompile(`^(#+) (.*)`)
	link    = regexp.MustCompile(`\]\(([^)]*)\)`)
	span    = regexp.MustCompile("`[^`]+`")
)

// differences tells in what the translation differs from the original, prose aside.
func differences(original, translated string) []string {
	a, b := sections(original), sections(translated)
	if len(a) != len(b) {
		return []string{fmt.Sprintf("it has %d headings, and the original %d", len(b)-1, len(a)-1)}
	}
	var all []string
	for i := range a {
		for _, d := range a[i].differences(b[i]) {
			all = append(all, fmt.Sprintf("section %q (%q): %s", b[i].title, a[i].title, d))
		}
	}
	return all
}

func (s *section) differences(t *section) []string {
	var all []string
	differ := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, n := range []struct {
		what          string
		original, its int
	}{
		{"heading's level", s.level, t.level},
		{"number of paragraphs", s.paragraphs, t.paragraphs},
		{"number of list items", s.items, t.items},
		{"number of blocks of code", len(s.code), len(t.code)},
	} {
		if n.original != n.its {
			differ("its %s is %d, not %d", n.what, n.its, n.original)
		}
	}
	for i := range min(len(s.code), len(t.code)) {
		if s.code[i] != t.code[i] {
			differ("block of code %d is not the original's", i+1)
		}
	}
	if !slices.Equal(s.tables, t.tables) {
		differ("its tables are %v, not %v", t.tables, s.tables)
	}
	for _, d := range apart(s.links, t.links) {
		differ("links to %s", d)
	}
	for _, d := range apart(s.spans, t.spans) {
		differ("code in the prose, %s", d)
	}
	return all
}

// apart lists what occurs more often in one than in the other.
func apart(original, its map[string]int) []string {
	var all []string
	keys := maps.Clone(original)
	maps.Copy(keys, its)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if original[key] != its[key] {
			all = append(all, fmt.Sprintf("%s: %d, not %d", key, its[key], original[key]))
		}
	}
	return all
}

// sections takes a document apart. What comes before the first heading is one of them.
func sections(text string) []*section {
	s := &section{links: map[string]int{}, spans: map[string]int{}}
	all := []*section{s}
	for _, block := range blocks(strings.Split(text, "\n")) {
		if m := heading.FindStringSubmatch(block[0]); m != nil {
			s = &section{title: m[2], level: len(m[1]), links: map[string]int{}, spans: map[string]int{}}
			all = append(all, s)
			continue
		}
		s.add(block)
	}
	return all
}

// add takes one block in.
func (s *section) add(block []string) {
	whole := strings.Join(block, "\n")
	switch {
	case strings.HasPrefix(whole, "```"), strings.HasPrefix(whole, "    "):
		s.code = append(s.code, whole)
		return
	case strings.HasPrefix(whole, "<!--"):
		return
	case strings.HasPrefix(whole, "|"):
		s.tables = append(s.tables, fmt.Sprintf("%d rows of %d", len(block), columns(block[0])))
		for i, row := range block {
			if columns(row) != columns(block[0]) {
				s.tables = append(s.tables, fmt.Sprintf("row %d of %d", i+1, columns(row)))
			}
		}
	case strings.HasPrefix(whole, "- "):
		for _, line := range block {
			if strings.HasPrefix(line, "- ") {
				s.items++
			}
		}
	default:
		s.paragraphs++
	}
	for _, m := range link.FindAllStringSubmatch(whole, -1) {
		s.links[target(m[1])]++
	}
	for _, code := range span.FindAllString(whole, -1) {
		s.spans[code]++
	}
}

// columns counts the cells of a table's row.
func columns(row string) int { return strings.Count(row, "|") - 1 }

// target makes targets comparable: a place in the document itself has another name in
// the other language, and each document links to the other one.
func target(to string) string {
	switch {
	case strings.HasPrefix(to, "#"):
		return "a section"
	case to == source || to == translation:
		return "the other language"
	}
	return to
}

// blocks parts lines at empty ones, and at the beginning and end of code.
func blocks(lines []string) [][]string {
	var all [][]string
	var block []string
	fenced := false
	end := func() {
		if len(block) > 0 {
			all = append(all, block)
		}
		block = nil
	}
	for _, line := range lines {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && !fenced:
			end()
			block, fenced = []string{line}, true
		case fence:
			block, fenced = append(block, line), false
			end()
		case line == "" && !fenced:
			end()
		default:
			block = append(block, line)
		}
	}
	end()
	return all
}
