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

// outcome is what came of one `go test`.
type outcome struct {
	failures []failure
	// passed counts top-level tests.
	passed int
	// broken says why, when the whole has failed otherwise than by its tests.
	broken []string
}

// running is a test that has not ended.
type running struct {
	from   time.Time
	output strings.Builder
}

// progress is how far a package has come.
type progress struct {
	running map[string]*running // top-level tests
	failed  int
	own     strings.Builder // what it printed itself
	rest    strings.Builder // what tests printed that have not failed
}

// reader follows the events of one `go test`.
type reader struct {
	out      io.Writer
	packages map[string]*progress
	outcome  outcome
}

func newReader(out io.Writer) *reader { return &reader{out: out, packages: map[string]*progress{}} }

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
	p := r.packages[e.Package]
	if p == nil {
		p = &progress{running: map[string]*running{}}
		r.packages[e.Package] = p
	}
	over := e.Action == "pass" || e.Action == "skip" || e.Action == "fail"
	switch name, _, inner := strings.Cut(e.Test, "/"); {
	case strings.HasPrefix(e.Output, "=== "): // who begins and who goes on
	case name == "" && over:
		r.over(e, p)
		delete(r.packages, e.Package)
	case name == "":
		p.own.WriteString(e.Output)
	case over && inner: // its top-level test tells
	default:
		test := p.test(name, e.Time)
		test.output.WriteString(e.Output)
		if over {
			r.ended(e, p, test)
			delete(p.running, name)
		}
	}
}

// test returns the test of a name, which may begin with this.
func (p *progress) test(name string, now time.Time) *running {
	test := p.running[name]
	if test == nil {
		test = &running{from: now}
		p.running[name] = test
	}
	return test
}

// ended takes in how a top-level test has ended.
func (r *reader) ended(e event, p *progress, test *running) {
	switch e.Action {
	case "fail":
		p.failed++
		r.outcome.failures = append(r.outcome.failures, failure{
			pkg: e.Package, test: e.Test, from: test.from, to: e.Time, output: test.output.String(),
		})
		return
	case "pass":
		r.outcome.passed++
	}
	// The last words of a program that is ended are counted as those of any test.
	p.rest.WriteString(test.output.String())
}

// over takes in how a package has ended.
func (r *reader) over(e event, p *progress) {
	if e.Action != "fail" {
		r.say("%s", strings.Replace("\n"+p.own.String(), "\nPASS\n", "\n", 1)[1:])
		return
	}
	if p.failed > 0 && len(p.running) == 0 && e.FailedBuild == "" && !worse(p.own.String()+p.rest.String()) {
		r.say("steady: %d tests of %s have failed\n", p.failed, e.Package)
		return
	}
	r.say("%s%s", p.rest.String(), p.own.String())
	for _, test := range p.running {
		r.say("%s", test.output.String())
	}
	r.outcome.broken = append(r.outcome.broken, e.Package)
}

// worse reports whether a text tells of more than of tests that are late.
func worse(text string) bool {
	return slices.ContainsFunc([]string{"DATA RACE", "panic:", "fatal error:", "testing: "}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// say tells what goes on; whether anybody reads it is none of its business.
func (r *reader) say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }
