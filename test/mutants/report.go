package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// state is what became of a mutant.
type state string

const (
	caught   state = "caught"
	died     state = "CRASHED" // a test crashed: it shows no failed assertion
	survived state = "SURVIVED"
	broken   state = "ERROR"
	invalid  state = "invalid" // a generated mutant that does not compile
	notRun   state = "not run"
)

// result is one line of the table.
type result struct {
	mutant *mutant
	state  state
	tests  []seen
	err    error
	took   time.Duration
}

// seen is what a test did about a mutant.
type seen struct {
	test  string
	shows colour
}

func (r *result) add(test catcher, shows colour) {
	name := test.test
	if name == "" {
		name = test.pkg
	}
	r.tests = append(r.tests, seen{name, shows})
	switch {
	case shows == green:
		r.state = survived
	case r.mutant.generated:
		r.state = caught
	case shows == crashed && r.state == caught:
		r.state = died
	}
}

// by names the tests that let the mutant survive, or else the first that caught
// it, and those that hung or crashed.
func (r *result) by() string {
	var names []string
	for i, s := range r.tests {
		switch {
		case s.shows == hung:
			names = append(names, s.test+" (hung)")
		case s.shows == crashed:
			names = append(names, s.test+" (crashed)")
		case r.state == survived && s.shows == green:
			names = append(names, s.test+" (green)")
		case r.state == caught && i == 0:
			names = append(names, s.test)
		}
	}
	by := strings.Join(names, ", ")
	if more := len(r.tests) - len(names); more > 0 && r.state == caught {
		by += fmt.Sprintf(" and %d more", more)
	}
	return by
}

// table prints what became of the mutants that were run, those that nothing caught last, and counts all.
func table(out io.Writer, results []result) map[state]int {
	counts := map[state]int{}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(cells ...any) { _, _ = fmt.Fprintf(w, "%v\t%v\t%v\t%v\n", cells...) } // cannot fail
	row("mutant", "", "by", "seconds")
	for _, r := range results {
		counts[r.state]++
	}
	for _, s := range []state{invalid, caught, broken, died, survived} {
		for _, r := range results {
			if r.state == s {
				row(r.mutant.name, r.state, r.by(), fmt.Sprintf("%.1f", r.took.Seconds()))
			}
		}
	}
	_ = w.Flush() // as above
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(&text, "\n%s, %s: %v\n", r.mutant.at, r.mutant.name, r.err)
		}
	}
	_, _ = io.WriteString(out, text.String()) // an error is ignored: there is no other output to report it on
	return counts
}
