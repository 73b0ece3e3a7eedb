//go:build unix

package demo

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

const (
	counterLine = `(?m)^  counter     [1-9]\d*, equal to the finished rounds$`
	atMost      = time.Minute
)

// requireGreen checks the output of a demo that found nothing wrong.
func requireGreen(t *testing.T, got program.Outcome) {
	t.Helper()
	require.Equal(t, 0, got.Code, "%s%s", got.Stdout, got.Stderr)
	require.Empty(t, got.Stderr)
	require.Regexp(t, counterLine, got.Stdout)
	for _, line := range []string{
		`  inversions  0 in [1-9]\d* rounds with queued workers, by the server's list`,
		`  dead        [1-9]\d* places in the queue, the last evicted [\d.]+s after the kill`,
		`OK: no lost rounds, no overtaken workers, no two holders at the same time.`,
		`  two inside  never`,
		`  waits       p50 [\d.]+m?s, p99 [\d.]+m?s`,
		`  hand-overs  [1-9]\d* from one process to another, \d+ a second`,
		`  kill        process \d at \d+\.\d s, holding the lock, between its GET and its SET`,
		`  take-over   process \d, [\d.]+s after the kill \(a dead holder's lease: 3s\)`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, got.Stdout)
	}
	require.NotContains(t, got.Stdout, "\x1b", "an escape sequence, and no terminal")
	_, summary, _ := strings.Cut(got.Stdout, "\n\n")
	program.Fits(t, summary)
}

const wholeDemo = "a dead process leaves the queue after ten seconds; TestInterruptedDemoExitsCleanly does not wait for that"

func TestDemoPassesOnGivenServerAndCleansUp(t *testing.T) {
	testlevel.All(t, wholeDemo)
	t.Parallel()
	s := redistest.Start(t)
	requireGreen(t, program.Start(t, program.NoServer(t), "demo", "--duration", "1s", "--redis", s.URL()).Outcome(atMost))
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, program.Soon, program.PollEvery)
}

func TestDemoNeedsReachableServer(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, "", "demo", "--redis", program.NoServer(t))
	require.Equal(t, 1, got.Code)
	warning, rest, _ := strings.Cut(got.Stderr, "\n")
	require.Contains(t, warning, "the password in --redis")
	program.OneLine(t, rest)
	require.Contains(t, rest, "cannot reach Redis")
	require.NotContains(t, got.Stderr, "sesame")
}

func TestDemoPassesOnOwnServer(t *testing.T) {
	testlevel.All(t, wholeDemo)
	t.Parallel()
	requireGreen(t, program.Start(t, program.NoServer(t), "demo", "--duration", "1s").Outcome(atMost))
}

func TestDemoFailsWhenRoundsAreOverwritten(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, prefix := program.BusyDemo(t, s)
	// It returns 1 once a round has counted on from 0.
	const overwrite = `local counter, rounds = tonumber(redis.call('GET', KEYS[1])), redis.call('LLEN', KEYS[2])
if counter == rounds and rounds > 1 then redis.call('MSET', KEYS[1], 0, KEYS[3], 'another visit') end
return counter > 0 and counter < rounds and 1 or 0`
	require.Eventually(t, func() bool {
		return s.Do(t, "EVAL", overwrite, 3, prefix+":counter", prefix+":journal", prefix+":inside") == int64(1)
	}, program.Soon, program.PollEvery)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	got := p.Outcome(atMost)
	require.Equal(t, 1, got.Code, "a wrong result counts, even after a signal")
	require.Regexp(t, `WRONG: the counter is \d+, the workers wrote \d+ rounds: \d+ were overwritten\.`, got.Stdout)
	require.Contains(t, got.Stdout, "WRONG: two workers held the lock concurrently, seen ")
	require.NotContains(t, got.Stdout, "OK:")
	require.Equal(t, "redlatch: the demo failed\n", got.Stderr)
}

func TestInterruptedDemoExitsCleanly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, _ := program.BusyDemo(t, s)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	got := p.Outcome(atMost)
	require.Equal(t, 128+int(syscall.SIGINT), got.Code, "%s", got.Stdout)
	require.Regexp(t, counterLine, got.Stdout)
	require.Equal(t, "redlatch: interrupted\n", got.Stderr)
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

// A queue that was created after the last finished visit does not have a TTL yet, so a demo that is
// killed too early may leave it behind.
func TestKilledDemoLeavesNoProcessOrPermanentKey(t *testing.T) {
	t.Parallel()
	var forever []string
	for range 3 {
		s := redistest.Start(t)
		p, _ := program.BusyDemo(t, s)
		require.NoError(t, p.Cmd.Process.Kill())
		require.Eventually(t, func() bool { return s.Clients(t) == 0 }, program.Soon, program.PollEvery)
		_ = p.Rest()
		names, err := redis.Strings(s.Do(t, "KEYS", "*"), nil)
		require.NoError(t, err)
		require.NotEmpty(t, names)
		forever = slices.DeleteFunc(names, func(name string) bool { return s.Do(t, "TTL", name) != int64(-1) })
		if len(forever) == 0 {
			return
		}
		t.Logf("left for ever: %q", forever)
	}
	require.Empty(t, forever)
}

// TestFailedProcessFailsDemoUnlessKilled covers the reports of the processes.
func TestDemoReportsServerDeath(t *testing.T) {
	testlevel.All(t, "the processes have five seconds to stop")
	t.Parallel()
	s := redistest.Start(t)
	p, _ := program.BusyDemo(t, s)
	s.Kill()
	got := p.Outcome(atMost)
	require.Equal(t, 1, got.Code)
	require.True(t, strings.HasPrefix(got.Stderr, "redlatch: "), "%s", got.Stderr)
}

func TestDemoWorkerRejectsManualStart(t *testing.T) {
	t.Parallel()
	p := program.Start(t, program.NoServer(t), "__demo-worker")
	require.NoError(t, p.Stdin.Close())
	require.Empty(t, p.Rest())
	require.Equal(t, 1, p.Code())
	require.Contains(t, p.Stderr.String(), "is started by redlatch demo only")
}
