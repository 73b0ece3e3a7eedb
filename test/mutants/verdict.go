package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// verdict is the result of a test or a mutant. A mutant's verdict is the worst result of its tests.
type verdict int

const (
	caught  verdict = iota
	hung            // without a failed assertion
	crashed         // without a failed assertion
	survived
	broken  // the test does not pass on unchanged code
	invalid // the generated mutant does not compile
)

func (v verdict) String() string {
	return [...]string{"caught", "HUNG", "CRASHED", "SURVIVED", "ERROR", "invalid"}[v]
}

type run struct {
	output string
	failed bool
	killed bool
}

var (
	crash   = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	endless = regexp.MustCompile(`(?m)^(panic: test timed out after |panic: deadlock: |fatal error: all goroutines are asleep)`)
	// badScript matches the error of a real server, because the run-time errors of the in-memory server look similar.
	badScript = regexp.MustCompile(`Error compiling script \(new function\): (user_script|@user_script)`)
)

const assertion = "\tError Trace:\t"

func (r *run) judge(c catcher) (verdict, error) {
	line := c.test + "\n"
	if c.test == "" {
		line = ""
	}
	before, died := r.output, crash.FindStringIndex(r.output)
	if died != nil {
		before = r.output[:died[0]]
	}
	switch {
	case c.test != "" && r.has("--- SKIP: "+c.test+" "):
		return broken, errors.New("it was skipped")
	case !r.has("=== RUN   " + line):
		return broken, fmt.Errorf("no test was run:\n%s", r.tail())
	case badScript.MatchString(r.output):
		return broken, fmt.Errorf("a script does not compile:\n%s", r.tail())
	case !r.failed:
		return survived, nil
	case strings.Contains(before, assertion):
		return caught, nil
	case r.killed, endless.MatchString(r.output):
		return hung, nil
	case died != nil:
		return crashed, nil
	}
	return caught, nil
}

func (r *run) has(text string) bool { return strings.Contains("\n"+r.output, "\n"+text) }

func (r *run) tail() string {
	const most = 3000
	if len(r.output) > most {
		return "…" + r.output[len(r.output)-most:]
	}
	return r.output
}
