//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// atMost is how long a demo of the fair lock may take on a slow machine.
const atMost = time.Minute

// requireFair checks the summary of a run of the fair lock in which all went well.
func requireFair(t *testing.T, got outcome) {
	t.Helper()
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Empty(t, got.stderr)
	for _, line := range []string{
		`  jobs        120, each of them once`,
		`  two inside  never`,
		`  inversions  0 in the [1-9]\d* turns with others queued, by the server's list`,
		`  waits       p50 \d+(\.\d)? ms, p99 \d+(\.\d)? ms`,
		`  hand-overs  [1-9]\d* from one worker to another, [1-9]\d* a second until the kill`,
		`  kill        process [123] at \d+\.\d s, holding the lock, [1-9]\d* places in the queue`,
		`  stall       \d+\.\d\d s at most after the kill; nobody waited longer than \d+\.\d\d s`,
		`OK: .*`, `    and nobody alive was overtaken\.`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, got.stdout)
	}
	require.NotContains(t, got.stdout, "\x1b", "an escape sequence, and no terminal")
	_, summary, _ := strings.Cut(got.stdout, "\n\n")
	fits(t, summary)
}

func TestFairDemoIsGreenOnAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	p := start(t, nobody(t), "demo", "--fair", "--jobs", "120")
	requireFair(t, p.outcome(atMost))
}

func TestFairDemoIsGreenOnAnotherServerAndLeavesNothingThere(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, nobody(t), "demo", "--fair", "--jobs", "120", "--redis", s.URL())
	requireFair(t, p.outcome(atMost))
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, pollEvery)
}

func TestFairDemoIsRedWithoutTheLock(t *testing.T) {
	t.Parallel()
	p := startWith(t, []string{brokenEnv + "=1"}, "demo", "--fair", "--jobs", "200")
	got := p.outcome(atMost)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `WRONG: \d+ jobs were lost\.`, got.stdout)
	require.Regexp(t, `WRONG: \d+ jobs were done more than once\.`, got.stdout)
	require.Contains(t, got.stdout, "WRONG: two were inside, seen ")
	require.NotContains(t, got.stdout, "OK:")
	require.Equal(t, "redlatch: the demo failed\n", got.stderr)
}

func TestFairDemoRefusesFlagsOfTheOther(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--fair", "--duration", "2s"}, {"--jobs", "200"}, {"--fair", "--jobs", "7"},
	} {
		got := finish(t, nobody(t), append([]string{"demo"}, args...)...)
		require.Equal(t, 1, got.code, "%v", args)
		oneLine(t, got.stderr)
	}
}

// busyFairDemo starts a demo and returns when jobs are being done.
func busyFairDemo(t *testing.T, s *redistest.Server) *program {
	t.Helper()
	p := start(t, nobody(t), "demo", "--fair", "--jobs", "5000", "--redis", s.URL())
	require.Eventually(t, func() bool {
		names, err := redis.Strings(s.Do(t, "KEYS", "redlatch-demo:*:visits"), nil)
		require.NoError(t, err)
		return len(names) == 1 && s.Clients(t) >= 3*8
	}, soon, pollEvery)
	return p
}

func TestFairDemoThatIsInterruptedEndsCleanly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := busyFairDemo(t, s)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	got := p.outcome(atMost)
	require.Equal(t, 128+int(syscall.SIGINT), got.code, "%s", got.stdout)
	require.Regexp(t, `jobs        [1-9]\d*, each of them once, and [1-9]\d* are left`, got.stdout)
	require.Equal(t, "redlatch: interrupted\n", got.stderr)
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

func TestFairDemoThatIsKilledLeavesNoProcessAndNothingForEver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := busyFairDemo(t, s)
	require.NoError(t, p.cmd.Process.Kill())
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, pollEvery)
	_ = p.rest()
	names, err := redis.Strings(s.Do(t, "KEYS", "*"), nil)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Positive(t, s.Do(t, "TTL", name), "%s", name)
	}
}

func TestFairDemoSaysWhenItsServerDies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := busyFairDemo(t, s)
	s.Kill()
	got := p.outcome(atMost)
	require.Equal(t, 1, got.code)
	require.True(t, strings.HasPrefix(got.stderr, "redlatch: "), "%s", got.stderr)
}
