package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// run is one test that was run.
type run struct {
	output string
	failed bool // the process did not end with 0
	killed bool // it did not end by itself
	took   time.Duration
}

// colour is what a run shows.
type colour int

const (
	green colour = iota
	red          // the test failed, or the process of the test died
	hung         // the test went on until it was stopped
)

// badScript is what a real server says of a script that does not compile. (The
// one in memory says nearly the same of errors in scripts that run.)
var badScript = regexp.MustCompile(`Error compiling script \(new function\): (user_script|@user_script)`)

// judge tells the colour of a run of a test. An error says that the run shows
// nothing.
func (r *run) judge(c catcher) (colour, error) {
	line := c.test + "\n"
	if c.test == "" {
		line = ""
	}
	switch {
	case r.killed || strings.Contains(r.output, "\npanic: test timed out after "):
		return hung, nil
	case c.test != "" && r.has("--- SKIP: "+c.test+" "):
		return 0, errors.New("it was skipped")
	case !r.has("=== RUN   " + line):
		return 0, fmt.Errorf("no test was run:\n%s", r.tail())
	case badScript.MatchString(r.output):
		return 0, fmt.Errorf("a script does not compile:\n%s", r.tail())
	case r.failed:
		return red, nil
	}
	return green, nil
}

// has reports whether a line of the output begins with text.
func (r *run) has(text string) bool { return strings.Contains("\n"+r.output, "\n"+text) }

// tail returns the end of the output.
func (r *run) tail() string {
	const most = 3000
	if len(r.output) > most {
		return "…" + r.output[len(r.output)-most:]
	}
	return r.output
}
