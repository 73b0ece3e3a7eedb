package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	most     = 20 // tests that run again
	tries    = 5  // of each
	inARow   = 3  // runs that must pass
	patience = time.Minute
)

func main() {
	s := &steady{out: os.Stdout, thief: watch(), goTest: goTest, settle: settle}
	if !s.run(os.Args[1:]) {
		os.Exit(1)
	}
}

// steady runs tests and judges them. Its fields but the last are set at first.
type steady struct {
	out   io.Writer
	thief *thief
	// goTest runs `go test -json` with these arguments and hands over what it prints.
	goTest func(args []string, read func(io.Reader) error) error
	// settle waits for a quiet moment, a while at most.
	settle func(*thief)
}

// run reports whether all is well.
func (s *steady) run(args []string) bool {
	began := time.Now()
	got, err := s.test(args)
	if err != nil {
		s.say("steady: %v\n", err)
		return false
	}
	if whole, worst := s.thief.taken(began, time.Now()); disturbs(whole, worst) {
		s.say("steady: the host took %s of the processors' time, in the worst second %s\n", percent(whole), percent(worst))
	}
	excused, real := s.judge(got.failures)
	if len(got.broken) == 0 && len(real) == 0 {
		real = s.again(args, excused)
		excused = nil
	}
	for _, f := range append(real, excused...) {
		s.say("%sFAIL\t%s\n", f.output, f)
	}
	for _, name := range got.broken {
		s.say("FAIL\t%s\n", name)
	}
	return len(got.broken)+len(real)+len(excused) == 0
}

// judge tells the failures that the host may have caused from all others.
func (s *steady) judge(all []failure) (excused, real []failure) {
	for _, f := range all {
		if !worse(f.output) && s.disturbed(f) {
			excused = append(excused, f)
		} else {
			real = append(real, f)
		}
	}
	if len(excused) > most {
		return nil, all
	}
	return excused, real
}

func (s *steady) disturbed(f failure) bool { return disturbs(s.thief.taken(f.from, f.to)) }

// again runs tests again, one after the other, and returns those that stay red.
func (s *steady) again(args []string, failed []failure) (red []failure) {
	for _, f := range failed {
		whole, worst := s.thief.taken(f.from, f.to)
		s.say("steady: %s failed while the host took %s of the processors' time, in the worst second %s:\n%s",
			f, percent(whole), percent(worst), barred(f.output))
		if last, ok := s.passes(args, f); ok {
			s.say("steady: %s has passed %d times in a row, alone\n", f, inARow)
		} else {
			red = append(red, last)
		}
	}
	return red
}

// passes reports whether a test passes when it runs alone, and returns how it failed
// at last.
func (s *steady) passes(args []string, f failure) (failure, bool) {
	for range tries {
		s.settle(s.thief)
		got, err := s.test(alone(args, f))
		switch {
		case err != nil || len(got.broken) > 0:
			return f, false
		case len(got.failures) == 0:
			return f, got.passed == inARow
		}
		f = got.failures[0]
		if worse(f.output) || !s.disturbed(f) {
			return f, false
		}
	}
	return f, false
}

// alone returns the arguments that run one test often enough.
func alone(args []string, f failure) []string {
	var kept []string
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.HasPrefix(a, "-") && !slices.Contains([]string{"run", "count", "parallel", "p", "v"}, name) {
			kept = append(kept, a)
		}
	}
	return append(kept, "-run=^"+regexp.QuoteMeta(f.test)+"$", fmt.Sprintf("-count=%d", inARow), f.pkg)
}

// test runs tests once.
func (s *steady) test(args []string) (outcome, error) {
	r := newReader(s.out)
	err := s.goTest(args, r.read)
	var exit *exec.ExitError
	switch failed := len(r.outcome.failures)+len(r.outcome.broken) > 0; {
	case err == nil && !failed, errors.As(err, &exit) && failed:
		return r.outcome, nil
	case err == nil:
		return r.outcome, errors.New("go test has succeeded although tests have failed")
	default:
		return r.outcome, fmt.Errorf("go test: %w", err)
	}
}

// goTest runs the real one. What it prints besides is for people.
func goTest(args []string, read func(io.Reader) error) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...) //nolint:gosec // what the caller asked for
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return errors.Join(read(out), cmd.Wait())
}

// settle waits until the host has taken next to nothing for some seconds.
func settle(t *thief) {
	const quiet = 5 * time.Second
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second) {
		now := time.Now()
		if _, worst := t.taken(now.Add(-quiet), now); worst < 0.05 {
			return
		}
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// barred puts a bar before each line.
func barred(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("| " + line)
	}
	return b.String()
}

func (s *steady) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
