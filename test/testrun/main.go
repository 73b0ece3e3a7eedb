// Program testrun runs the module's tests. It prints the output of failed tests and the reasons why tests were skipped.
// At the end, it prints the beginning of the log of each failed test again.
//
//	go run ./test/testrun ./...        the tests that make test runs; results may be cached
//	go run ./test/testrun -all ./...   all tests, with REDLATCH_TEST=all and the race detector
//
// The race detector takes four times as much CPU time. With -all, tests that do not work with the race detector or are only slowed down by it (testlevel.NoRace) are run
// again without it, and it is a failure if a testlevel.All test is skipped. The program does not run vet, because make
// lint does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func main() {
	all := flag.Bool("all", false, "run all tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r := &run{out: os.Stdout, all: *all, args: []string{"-vet=off", "-timeout=" + limit(*all).String()}}
	// Most of the time, most tests are waiting.
	at := max(6, runtime.GOMAXPROCS(0))
	r.args = append(r.args, "-p="+strconv.Itoa(at))
	if r.all {
		r.args = append(r.args, "-count=1")
	} else {
		// Without debugging information, which stack traces do not need, compiling and linking take a fifth less CPU
		// time, and without cgo, linking and starting programs another fifth. With -all, .ci/run has already compiled
		// the packages with both.
		r.args = append(r.args, "-parallel="+strconv.Itoa(at), "-gcflags=./...=-dwarf=false")
	}
	err := r.tests(ctx, r.longestFirst(flag.Args()))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// limit returns the time limit for each package. Without -all, all packages together should finish within this time on
// two processors.
func limit(all bool) time.Duration {
	if all {
		return 25 * time.Minute
	}
	return 3 * time.Minute
}

// The slowest packages are started first, so that they do not run alone at the end.
var (
	longer = []string{".", "./internal/luasrc", "./internal/test/locksuite"}
	long   = []string{"./rlock", "./redlatchui", "./rfairlock", "./rreadwritelock", "./internal/redisconn", "./test/badinput", "./cmd/redlatch/..."}
)

type run struct {
	out  io.Writer
	all  bool
	args []string

	used time.Duration
}

func (r *run) longestFirst(packages []string) []string {
	switch {
	case !slices.Contains(packages, "./..."):
		return packages
	case r.all:
		return slices.Concat(longer, long, packages)
	}
	return slices.Concat(long, packages)
}

func (r *run) tests(ctx context.Context, packages []string) error {
	began := time.Now()
	args := packages
	if r.all {
		args = append([]string{"-race"}, packages...)
	}
	seen, err := r.goTest(ctx, args)
	if r.all && err == nil && len(seen.because(testlevel.NotWithRace)) > 0 {
		err = r.again(ctx, seen)
	}
	_, _ = fmt.Fprint(r.out, seen.skips(), seen.failures())
	took := time.Since(began).Round(time.Second)
	_, _ = fmt.Fprintf(r.out, "\n%d tests passed, %d failed, %d were skipped; %v, %v of processor time\n",
		len(seen.passed), len(seen.failed), len(seen.skipped), took, r.used.Round(time.Second))
	if left := seen.because(testlevel.Left); r.all && len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%d tests were left out of a run of all tests", len(left)))
	}
	return err
}

func (r *run) again(ctx context.Context, seen *outcome) error {
	left := seen.because(testlevel.NotWithRace)
	_, _ = fmt.Fprintf(r.out, "\nWithout the race detector:\n")
	second, err := r.goTest(ctx, append([]string{"-v", "-run=" + pattern(left)}, packagesOf(left)...))
	if err == nil && len(second.skipped) > 0 {
		err = fmt.Errorf("%d tests were skipped with the race detector and without", len(second.skipped))
	}
	seen.replace(left, second)
	return err
}

func (r *run) goTest(ctx context.Context, args []string) (*outcome, error) {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-json"}, r.args...), args...)...) //nolint:gosec // flags and packages in this module
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	cmd.Env = r.env()
	seen := newOutcome(r.out)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return seen, err
	}
	if err = cmd.Start(); err != nil {
		return seen, err
	}
	readErr := seen.read(events)
	err = cmd.Wait()
	r.used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return seen, errors.Join(readErr, err)
}

// env shortens the second by which the race detector delays the exit of each process, because packages do not leak
// goroutines. Linkers and tests have small heaps, whose garbage collection would take a sixth of the CPU time.
func (r *run) env() []string {
	env := append(os.Environ(), testlevel.Env+"=")
	if r.all {
		env = append(env, testlevel.Env+"=all")
	} else {
		env = append(env, "CGO_ENABLED=0")
	}
	if os.Getenv("GORACE") == "" {
		env = append(env, "GORACE=atexit_sleep_ms=100")
	}
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=300")
	}
	// With a fixed seed, no run fails by chance. The nightly job sets 0, which means a new seed for each test.
	if os.Getenv("RAPID_SEED") == "" {
		env = append(env, "RAPID_SEED=1")
	}
	return env
}

func pattern(tests []skip) string {
	var names []string
	for _, s := range tests {
		parts := strings.Split(s.test, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		names = append(names, strings.Join(parts, "/"))
	}
	return strings.Join(unique(names), "|")
}

func packagesOf(tests []skip) []string {
	var names []string
	for _, s := range tests {
		names = append(names, s.pkg)
	}
	return unique(names)
}
