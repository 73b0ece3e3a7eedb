package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// suite is the tests of one package.
type suite struct {
	pkg, dir, binary string
	fake             []string // the names of its tests on fake time
	others           bool     // it has other tests
}

// campaign repeats suites.
type campaign struct {
	fake, rest int    // rounds
	only       string // tests whose names match, "" for all
	suites     []*suite

	mu       sync.Mutex // guards what follows
	failures int
	took     map[string]time.Duration // the last run of each kind and package
}

// work is one run of some tests of a suite.
type work struct {
	*suite
	round int
	kind  string   // of the round: fake time, or real time
	args  []string // which tests
}

// run does all rounds, or as many as there is time for, and returns how many runs failed.
func (c *campaign) run(ctx context.Context) int {
	began := time.Now()
	var fake, rest int
	turns := min(c.fake, c.rest)
	if turns == 0 {
		turns = max(c.fake, c.rest)
	}
	for turn := 1; turn <= turns && ctx.Err() == nil; turn++ {
		// At the same time: each is load for the other, and one takes what processors the other
		// leaves.
		var both sync.WaitGroup
		both.Go(func() { fake = c.rounds(ctx, "fake time", fake, c.fake*turn/turns) })
		both.Go(func() { rest = c.rounds(ctx, "real time", rest, c.rest*turn/turns) })
		both.Wait()
		c.progress(fake, rest, began)
	}
	if ctx.Err() != nil {
		fmt.Println("The time is up: the round that was under way does not count.")
	}
	return c.failures
}

func (c *campaign) progress(fake, rest int, began time.Time) {
	fmt.Printf("%v: %d of %d rounds on fake time, %d of %d of the rest; %d failures\n",
		time.Since(began).Round(time.Second), fake, c.fake, rest, c.rest, c.failures)
}

// rounds does rounds of one kind until so many are done, and returns how many are.
func (c *campaign) rounds(ctx context.Context, kind string, done, due int) int {
	for done < due && c.round(ctx, kind, done+1) {
		done++
	}
	return done
}

// round runs the tests of one kind in all packages, and reports whether it came to its end. One
// more runs at once than there are processors, since most tests wait most of the time.
func (c *campaign) round(ctx context.Context, kind string, round int) bool {
	todo := make(chan work)
	var workers sync.WaitGroup
	for range runtime.NumCPU() + 1 {
		workers.Go(func() {
			for w := range todo {
				c.try(ctx, w)
			}
		})
	}
	for _, w := range c.longestFirst(kind, round) {
		todo <- w
	}
	close(todo)
	workers.Wait()
	return ctx.Err() == nil
}

// longestFirst returns what a round runs. Begun last, a long package would run alone at its end,
// on idle processors.
func (c *campaign) longestFirst(kind string, round int) (all []work) {
	for _, s := range c.suites {
		if args := s.choose(kind, c.only); args != nil {
			all = append(all, work{s, round, kind, args})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(all, func(a, b work) int { return cmp.Compare(c.took[b.key()], c.took[a.key()]) })
	return all
}

func (w work) key() string { return w.kind + " " + w.pkg }

// choose returns what makes the binary run its tests of one kind, nil if it has none.
func (s *suite) choose(kind, only string) []string {
	names := "^(" + strings.Join(s.fake, "|") + ")$"
	switch {
	case kind == "fake time" && len(s.fake) > 0 && only == "":
		return []string{"-test.run=" + names}
	case kind == "fake time":
		return s.matching(only)
	case !s.others:
		return nil
	case len(s.fake) == 0:
		return []string{"-test.run=" + only}
	default:
		return []string{"-test.run=" + only, "-test.skip=" + names}
	}
}

// matching chooses the tests on fake time whose names match.
func (s *suite) matching(only string) []string {
	var names []string
	for _, name := range s.fake {
		if ok, err := regexp.MatchString(only, name); err == nil && ok {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{"-test.run=^(" + strings.Join(names, "|") + ")$"}
}

// try runs tests once and prints what failed.
func (c *campaign) try(ctx context.Context, w work) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, w.binary, append(w.args, "-test.timeout=10m", "-test.parallel=4")...) //nolint:gosec // made by build
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), testlevel.Env+"=", "GORACE=atexit_sleep_ms=100")
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[w.key()] = took
	if err == nil || ctx.Err() != nil {
		return
	}
	c.failures++
	fmt.Printf("FAILED in round %d on %s, after %v: %s %s\n%s\n", w.round, w.kind, took.Round(time.Second), w.pkg, failed(string(output)), output)
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failed names the tests that the output says failed.
func failed(output string) string {
	var names []string
	for _, m := range failedTest.FindAllStringSubmatch(output, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}
