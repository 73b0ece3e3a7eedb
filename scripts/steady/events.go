package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one of those that `go test -json` prints.
type event struct {
	Time        time.Time
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

// failure is a test that failed.
type failure struct {
	pkg, test string
	from, to  time.Time
	output    string
}

func (f failure) String() string { return f.pkg + " " + f.test }

// races reports whether what it printed is more than being late.
func (f failure) races() bool {
	return strings.Contains(f.output, "DATA RACE") || strings.Contains(f.output, "panic:")
}

// outcome is what came of one `go test`.
type outcome struct {
	failures []failure
	// passed counts top-level tests.
	passed int
	// broken says why, when the whole has failed otherwise than by its tests.
	broken []string
}

// running is a test that has not ended, or a package: that has no test.
type running struct {
	from   time.Time
	output strings.Builder
}

// reader follows the events of one `go test`.
type reader struct {
	out     io.Writer
	tests   map[string]map[string]*running // by package, then top-level test; "" is the package
	outcome outcome
}

func newReader(out io.Writer) *reader {
	return &reader{out: out, tests: map[string]map[string]*running{}}
}

// read takes all events in. It prints a line for each package, as `go test` does, and
// keeps what failing tests printed.
func (r *reader) read(in io.Reader) error {
	lines := json.NewDecoder(in)
	for {
		var e event
		switch err := lines.Decode(&e); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("what go test -json prints cannot be read: %w", err)
		}
		r.take(e)
	}
}

func (r *reader) take(e event) {
	if e.Package == "" { // the output of a build
		r.say("%s", e.Output)
		return
	}
	top, _, inner := strings.Cut(e.Test, "/")
	known := r.tests[e.Package]
	if known == nil {
		known = map[string]*running{}
		r.tests[e.Package] = known
	}
	test := known[top]
	if test == nil {
		test = &running{from: e.Time}
		known[top] = test
	}
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // who begins and who goes on
		}
		test.output.WriteString(e.Output)
	case "pass", "skip", "fail":
		switch {
		case inner: // its top-level test tells
		case top == "":
			r.over(e, test.output.String())
			delete(r.tests, e.Package)
		default:
			r.ended(e, top, test)
			delete(known, top)
		}
	}
}

// ended takes in how a top-level test has ended.
func (r *reader) ended(e event, name string, test *running) {
	if e.Action == "pass" {
		r.outcome.passed++
	}
	if e.Action != "fail" {
		return
	}
	r.outcome.failures = append(r.outcome.failures, failure{
		pkg: e.Package, test: name, from: test.from, to: e.Time, output: test.output.String(),
	})
}

// over takes in how a package has ended.
func (r *reader) over(e event, output string) {
	if e.Action != "fail" {
		r.say("%s", strings.Replace("\n"+output, "\nPASS\n", "\n", 1)[1:])
		return
	}
	mine := slices.DeleteFunc(slices.Clone(r.outcome.failures), func(f failure) bool { return f.pkg != e.Package })
	cut := slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") ||
			strings.Contains(line, "DATA RACE") || strings.Contains(line, "testing: ")
	})
	unfinished := len(r.tests[e.Package]) > 1 // besides the package itself
	if len(mine) == 0 || cut || unfinished || e.FailedBuild != "" {
		for _, test := range r.tests[e.Package] {
			r.say("%s", test.output.String())
		}
		r.outcome.broken = append(r.outcome.broken, e.Package)
		return
	}
	r.say("steady: %d tests of %s have failed\n", len(mine), e.Package)
}

// say tells what goes on; whether anybody reads it is none of its business.
func (r *reader) say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }
