package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type skip struct{ pkg, test, why string }

type outcome struct {
	out     io.Writer
	output  map[string][]string
	passed  map[string]bool
	failed  []string
	logged  map[string][]string
	skipped []skip
}

func newOutcome(out io.Writer) *outcome {
	return &outcome{out: out, output: map[string][]string{}, passed: map[string]bool{}, logged: map[string][]string{}}
}

func (o *outcome) read(events io.Reader) error {
	for in := json.NewDecoder(events); ; {
		var e event
		switch err := in.Decode(&e); err {
		case nil:
			o.take(e)
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("go test -json: %w", err)
		}
	}
}

func (o *outcome) take(e event) {
	id := e.Package + " " + e.Test
	switch {
	case e.Action == "output" && e.Test == "":
		o.line(e)
	case e.Action == "output":
		o.output[id] = append(o.output[id], e.Output)
	case e.Action == "build-output":
		_, _ = fmt.Fprint(o.out, e.Output)
	case e.Test == "":
		o.packageEnds(e)
	case e.Action == "pass" || e.Action == "skip" || e.Action == "fail":
		o.testEnds(e, o.output[id])
		delete(o.output, id)
	}
}

// line prints a line of output, except for the summary lines that every package has.
func (o *outcome) line(e event) {
	switch text := strings.TrimSpace(e.Output); {
	case text == "PASS" || text == "FAIL" || strings.HasPrefix(text, "coverage:") || strings.HasSuffix(text, "[no test files]"):
	default:
		_, _ = fmt.Fprint(o.out, e.Output)
	}
}

func panics(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

func (o *outcome) testEnds(e event, output []string) {
	// go test attributes the output of a panic or timeout to the test that wrote output last, which may have passed.
	if i := slices.IndexFunc(output, panics); i >= 0 && e.Action != "fail" {
		_, _ = fmt.Fprint(o.out, strings.Join(output[i:], ""))
	}
	switch e.Action {
	case "pass":
		o.passed[e.Package+" "+e.Test] = true
	case "skip":
		o.skipped = append(o.skipped, skip{e.Package, e.Test, reason(output)})
	default:
		o.failed = append(o.failed, e.Package+" "+e.Test)
		o.logged[e.Package+" "+e.Test] = output
		_, _ = fmt.Fprint(o.out, strings.Join(output, ""))
	}
}

// packageEnds prints the output of tests that were ended by a panic or by the time limit.
func (o *outcome) packageEnds(e event) {
	for _, id := range slices.Sorted(maps.Keys(o.output)) {
		if pkg, _, _ := strings.Cut(id, " "); pkg != e.Package {
			continue
		}
		if e.Action == "fail" {
			_, _ = fmt.Fprint(o.out, strings.Join(o.output[id], ""))
		}
		delete(o.output, id)
	}
}

var position = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

func reason(output []string) string {
	why := "no reason"
	for _, line := range output {
		if at := position.FindString(line); at != "" {
			why = strings.TrimSpace(line[len(at):])
		}
	}
	return why
}

func (o *outcome) because(why string) (tests []skip) {
	for _, s := range o.skipped {
		if strings.HasPrefix(s.why, why) {
			tests = append(tests, s)
		}
	}
	return tests
}

func (o *outcome) replace(tests []skip, by *outcome) {
	o.skipped = slices.DeleteFunc(o.skipped, func(s skip) bool { return slices.Contains(tests, s) })
	o.skipped = append(o.skipped, by.skipped...)
	o.failed = append(o.failed, by.failed...)
	maps.Copy(o.logged, by.logged)
	maps.Copy(o.passed, by.passed)
}

const beginning = 12

// failures returns a summary of the failed tests. It omits the parents of failed subtests.
func (o *outcome) failures() string {
	var text strings.Builder
	for _, name := range o.failed {
		if slices.ContainsFunc(o.failed, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			continue
		}
		log := slices.DeleteFunc(slices.Clone(o.logged[name]), func(line string) bool { return strings.HasPrefix(line, "=== ") })
		fmt.Fprintf(&text, "\nFailed: %s\n%s", name, strings.Join(log[:min(beginning, len(log))], ""))
	}
	return text.String()
}

const few = 4

func (o *outcome) skips() string {
	byReason := map[string][]string{}
	for _, s := range o.skipped {
		byReason[s.why] = append(byReason[s.why], path.Base(s.pkg)+" "+s.test)
	}
	if len(byReason) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\nSkipped, and why:\n")
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		tests := byReason[why]
		slices.Sort(tests)
		fmt.Fprintf(&text, "  %s\n", why)
		for _, test := range tests[:min(few, len(tests))] {
			fmt.Fprintf(&text, "      %s\n", test)
		}
		if more := len(tests) - few; more > 0 {
			fmt.Fprintf(&text, "      and %d more\n", more)
		}
	}
	return text.String()
}

func unique[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
