package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// row is a line of the table.
type row struct {
	what, measured, before, wanted string
	detail                         []string // what was counted
}

// measure makes a row of the library.
type measure func(*library) (row, error)

func main() {
	verbose := flag.Bool("v", false, "list what was counted")
	flag.Parse()
	if err := table(os.Stdout, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "seam:", err)
		os.Exit(1)
	}
}

// table prints all rows. It goes on after a row that cannot be measured, and fails in the end.
func table(out io.Writer, verbose bool) error {
	l, err := loadLibrary()
	if err != nil {
		return err
	}
	var rows []row
	var failed []error
	for _, m := range []measure{
		onePath, contextWalk, loopKnowledge, stateFields, engineMethods, queuesCalls, fairOutside, fairMixed,
		releaseArguments, kindsNamed,
	} {
		r, err := m(l)
		if err != nil {
			r.measured = "?"
			failed = append(failed, fmt.Errorf("%s: %w", r.what, err))
		}
		rows = append(rows, r)
	}
	return errors.Join(append(failed, write(out, rows, verbose))...)
}

// write prints the rows in columns, and below them what was counted.
func write(out io.Writer, rows []row, verbose bool) error {
	var text strings.Builder
	text.WriteString("what\tmeasured\tat 8c599b2\twanted\n")
	for _, r := range rows {
		text.WriteString(r.line())
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	if err := w.Flush(); err != nil || !verbose {
		return err
	}
	text.Reset()
	for _, r := range rows {
		text.WriteString(r.list())
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// line is the row in the table.
func (r *row) line() string {
	return strings.Join([]string{r.what, r.measured, r.before, r.wanted}, "\t") + "\n"
}

// list is what the row has counted.
func (r *row) list() string {
	head := "\n" + r.what + ": " + r.measured
	return strings.Join(append([]string{head}, r.detail...), "\n  ") + "\n"
}

// missing is the error for a name that the library does not have.
func missing(n name) error { return fmt.Errorf("no %v: change scripts/seam/names.go", n) }
