package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// verdict is what a test, or all tests of a mutant, show about it. A planted mutant has the
// worst of its tests.
type verdict int

const (
	caught   verdict = iota // the test failed
	hung                    // the test went on until it was stopped, or all its goroutines waited
	crashed                 // the process died before the test could fail
	survived                // the test passed
	broken                  // the test cannot tell
	invalid                 // a generated mutant does not compile
)

func (v verdict) String() string {
	return [...]string{"caught", "HUNG", "CRASHED", "SURVIVED", "ERROR", "invalid"}[v]
}

// run is one test that was run.
type run struct {
	output string
	failed bool // the process did not end with 0
	killed bool // it did not end by itself
}

var (
	// crash is what Go prints of a process that dies.
	crash = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	// deadlock is what Go prints of a test in which all goroutines wait.
	deadlock = regexp.MustCompile(`(?m)^(panic: deadlock: |fatal error: all goroutines are asleep)`)
	// badScript is what a real server says of a script that does not compile. (The one in
	// memory says nearly the same of errors in scripts that run.)
	badScript = regexp.MustCompile(`Error compiling script \(new function\): (user_script|@user_script)`)
)

// assertion is what an assertion that failed has printed.
const assertion = "\tError Trace:\t"

// judge returns what a run of a test shows. It shows nothing if there is an error.
func (r *run) judge(c catcher) (verdict, error) {
	line := c.test + "\n"
	if c.test == "" {
		line = ""
	}
	switch {
	case r.killed, strings.Contains(r.output, "\npanic: test timed out after "), deadlock.MatchString(r.output):
		return hung, nil
	case c.test != "" && r.has("--- SKIP: "+c.test+" "):
		return broken, errors.New("it was skipped")
	case !r.has("=== RUN   " + line):
		return broken, fmt.Errorf("no test was run:\n%s", r.tail())
	case badScript.MatchString(r.output):
		return broken, fmt.Errorf("a script does not compile:\n%s", r.tail())
	case !r.failed:
		return survived, nil
	}
	if at := crash.FindStringIndex(r.output); at != nil && !strings.Contains(r.output[:at[0]], assertion) {
		return crashed, nil
	}
	return caught, nil
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
