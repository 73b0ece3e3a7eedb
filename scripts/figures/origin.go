package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// origin is where the figures of a table come from.
type origin struct {
	name    string // of the mark before the table; empty: the whole file is the command's
	file    string
	line    int
	command string
	commit  string
	date    string
	machine string
}

var (
	mark = regexp.MustCompile(`^<!-- figures: ([a-z-]+) -->$`)
	said = regexp.MustCompile("^\\*`([^`]+)`, commit `([0-9a-f]{7,40}(?:-dirty)?)`, (\\d{4}-\\d\\d-\\d\\d), (.+)\\.\\*$")
	// measured matches a cell that begins with what was measured.
	measured = regexp.MustCompile(`^[*−]*(\d[\d.,]*((, [\d.]+)+$| (to|/) [−\d.,]+| ?(ms|µs|MiB|/s|pairs/s|s)\b)|\d{1,3}(,\d{3})+\b)`)
)

// origins returns the origins in a document. It is an error when a table of figures has none.
func origins(file, text string) ([]origin, error) {
	lines := append(strings.Split(text, "\n"), "the end") // which ends a table, too
	var all []origin
	name, table, cells := "", 0, 0
	for i, line := range lines {
		switch {
		case mark.MatchString(line):
			name = mark.FindStringSubmatch(line)[1]
		case said.MatchString(line):
			m := said.FindStringSubmatch(line)
			all = append(all, origin{name, file, i + 1, m[1], m[2], m[3], m[4]})
			name, table, cells = "", 0, 0
		case strings.HasPrefix(line, "|"):
			if table == 0 {
				table = i + 1
			}
			cells += figuresIn(line)
		case line == "":
		case file == settings, wholly(all): // the command of such a file writes all of its tables
			table, cells = 0, 0
		case name != "":
			return nil, fmt.Errorf("%s:%d: the figures %q are not followed by their origin", file, i+1, name)
		case cells > mostCells:
			return nil, fmt.Errorf("%s:%d: a table of figures does not say where they come from", file, table)
		default:
			table, cells = 0, 0
		}
	}
	return all, nil
}

// mostCells is how many cells of a table may look like figures that were not measured.
const mostCells = 3

// settings is a page whose tables have settings, not figures.
const settings = "docs/migration.md"

// wholly reports whether all figures of a document are of one command, named at its top.
func wholly(all []origin) bool { return len(all) == 1 && all[0].name == "" && all[0].line < 5 }

// figuresIn counts the cells of a row that look measured.
func figuresIn(row string) (n int) {
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		if measured.MatchString(strings.TrimSpace(cell)) {
			n++
		}
	}
	return n
}

// product is the code of the library.
var product = []string{
	":(glob)*.go", "admin", "codec", "pubsub", "rfairlock", "rfencedlock", "rlatch", "rlock", "rmultilock", "rreadwritelock",
	"rsemaphore", "transport", "internal", ":(exclude)internal/test",
}

// measures returns the paths of the code that the command of a table measures.
func (o origin) measures() []string {
	switch {
	case strings.HasPrefix(o.command, "make model"):
		return []string{"internal/fairqueue/liveness", "test/simulation"}
	case strings.HasPrefix(o.command, "make bench-observed"):
		return append([]string{"bench", "otelredlatch", "promredlatch"}, product...)
	case strings.HasPrefix(o.command, "make bench"), strings.HasPrefix(o.command, "make loss"):
		// What prints measures nothing.
		return append([]string{
			"bench", ":(exclude)bench/main.go", ":(exclude)bench/plots.go", ":(exclude)bench/internal/report", ":(exclude)bench/internal/loss/overview.go",
		}, product...)
	case strings.HasPrefix(o.command, "make failover"), strings.HasPrefix(o.command, "make adapters"):
		return append([]string{"adapter"}, product...)
	}
	return product
}

// replace returns a document with another table in place of this one's, made of the rows in
// output, and with the commit and the date of this origin.
func (o origin) replace(text, output string) (string, error) {
	var rows []string
	for line := range strings.Lines(output) {
		if at := strings.Index(line, "| "); at >= 0 || strings.HasPrefix(line, "|--") {
			rows = append(rows, strings.TrimSpace(line[max(at, 0):]))
		}
	}
	if len(rows) < 3 || o.name == "" {
		return "", fmt.Errorf("%s: %s prints no table for it", o.file, o.command)
	}
	from := strings.Index(text, "<!-- figures: "+o.name+" -->\n")
	if from < 0 {
		return "", errors.New("the mark is gone")
	}
	begin := strings.Index(text[from:], "\n*`")
	if begin < 0 {
		return "", errors.New("the origin is gone")
	}
	end := begin + 1 + strings.IndexByte(text[from+begin+1:]+"\n", '\n')
	return text[:from] + "<!-- figures: " + o.name + " -->\n" + strings.Join(rows, "\n") + "\n\n" +
		fmt.Sprintf("*`%s`, commit `%s`, %s, %s.*", o.command, o.commit, o.date, o.machine) + text[from+end:], nil
}
