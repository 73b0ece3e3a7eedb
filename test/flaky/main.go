// Program flaky looks for tests that fail by chance. It builds the tests of this module once,
// with the race detector, and runs what `make test` runs again and again. More packages run at
// a time than there are processors, so that each is load for the others.
//
//	go run ./test/flaky -rounds 20 -limit 90m
//	go run ./test/flaky -rounds 1000 ./internal/mux
//
// It prints each failure with its round and its output, and fails if there was one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func main() {
	rounds := flag.Int("rounds", 20, "how often all tests run")
	limit := flag.Duration("limit", 90*time.Minute, "for how long at most, without the build")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failures, err := repeat(ctx, packages, *rounds, *limit)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(2)
	case failures > 0:
		os.Exit(1)
	}
}

// repeat builds the tests of packages and runs them. It returns how many runs failed.
func repeat(ctx context.Context, packages []string, rounds int, limit time.Duration) (failures int, err error) {
	dir, err := os.MkdirTemp("", "flaky-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Println("Building the tests.")
	suites, err := build(ctx, dir, packages)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for round := 1; round <= rounds && ctx.Err() == nil; round++ {
		failures += runAll(ctx, suites, round)
		fmt.Printf("%v: round %d of %d; %d failures\n", time.Since(began).Round(time.Second), round, rounds, failures)
	}
	return failures, nil
}

// suite is the tests of one package.
type suite struct{ pkg, dir, binary string }

// tested lists the packages that have tests, with their folders.
const tested = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`

// build compiles the tests of packages into dir.
func build(ctx context.Context, dir string, packages []string) (all []suite, err error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", tested}, packages...)...) //nolint:gosec // packages of this module
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		s := suite{pkg, folder, filepath.Join(dir, fmt.Sprintf("%d.test", len(all)))}
		compile := exec.CommandContext(ctx, "go", "test", "-race", "-c", "-o", s.binary, s.pkg) //nolint:gosec // as above
		if said, err := compile.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s: %w\n%s", s.pkg, err, said)
		}
		all = append(all, s)
	}
	return all, nil
}

// runAll runs all suites once, one more at a time than there are processors, since most tests
// wait most of the time. It returns how many failed.
func runAll(ctx context.Context, suites []suite, round int) (failures int) {
	var mu sync.Mutex // guards failures, and the output
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU()+1)
	for _, s := range suites {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			output, err := s.run(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failures++
			fmt.Printf("FAILED in round %d: %s %s\n%s\n", round, s.pkg, failed(output), output)
		})
	}
	running.Wait()
	return failures
}

func (s suite) run(ctx context.Context) (output string, err error) {
	cmd := exec.CommandContext(ctx, s.binary, "-test.timeout=10m", "-test.parallel=4") //nolint:gosec // made by build
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), testlevel.Env+"=", "GORACE=atexit_sleep_ms=100")
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.CombinedOutput()
	return string(said), err
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failed names the tests that failed according to the output.
func failed(output string) string {
	var names []string
	for _, m := range failedTest.FindAllStringSubmatch(output, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}
