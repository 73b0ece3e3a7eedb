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
	green   colour = iota
	red            // the test failed
	hung           // the test went on until it was stopped, or all its goroutines waited
	crashed        // the process died before the test could fail
)

// crash is what Go says of a process that dies, and assertion what a test that has failed before.
var (
	crash     = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	assertion = "\tError Trace:\t"
)

// deadlock is what Go says of a test in which all goroutines wait.
var deadlock = regexp.MustCompile(`(?m)^(panic: deadlock: |fatal error: all goroutines are asleep)`)

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
	case r.killed, strings.Contains(r.output, "\npanic: test timed out after "), deadlock.MatchString(r.output):
		return hung, nil
	case c.test != "" && r.has("--- SKIP: "+c.test+" "):
		return 0, errors.New("it was skipped")
	case !r.has("=== RUN   " + line):
		return 0, fmt.Errorf("no test was run:\n%s", r.tail())
	case badScript.MatchString(r.output):
		return 0, fmt.Errorf("a script does not compile:\n%s", r.tail())
	case r.failed && r.hasCrashed():
		return crashed, nil
	case r.failed:
		return red, nil
	}
	return green, nil
}

// hasCrashed reports whether the process died, and no assertion of the test had failed before.
func (r *run) hasCrashed() bool {
	at := crash.FindStringIndex(r.output)
	return at != nil && !strings.Contains(r.output[:at[0]], assertion)
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
