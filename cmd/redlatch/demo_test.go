//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

var (
	counterLine  = regexp.MustCompile(`(?m)^  counter     [1-9]\d*, as many as rounds were finished$`)
	takeOverLine = regexp.MustCompile(`(?m)^  take-over   worker \d, \d+\.\d\d s after the kill`)
)

// requireGreen checks the summary of a run in which all went well.
func requireGreen(t *testing.T, got outcome) {
	t.Helper()
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Empty(t, got.stderr)
	require.Regexp(t, counterLine, got.stdout)
	require.Contains(t, got.stdout, "\n  two inside  never\n")
	require.Regexp(t, takeOverLine, got.stdout)
	require.Contains(t, got.stdout, "\nOK: ")
	require.NotContains(t, got.stdout, "\x1b", "an escape sequence, and no terminal")
	_, summary, _ := strings.Cut(got.stdout, "\n\n")
	fits(t, summary)
}

func TestDemoIsGreenOnAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	// REDIS_URL is not looked at.
	requireGreen(t, finish(t, nobody(t), "demo", "--duration", "1s"))
}

func TestDemoIsGreenOnAnotherServerAndLeavesNothingThere(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	requireGreen(t, finish(t, nobody(t), "demo", "--duration", "1s", "--redis", s.URL()))
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, pollEvery)
}

func TestDemoIsRedWithoutTheLock(t *testing.T) {
	t.Parallel()
	p := startWith(t, []string{brokenEnv + "=1"}, "demo", "--duration", "1s")
	out := p.rest()
	require.Equal(t, 1, p.code())
	require.Contains(t, out, "WRONG: the counter is ")
	require.Contains(t, out, "WRONG: two were inside, seen ")
	require.NotContains(t, out, "OK:")
	require.Equal(t, "redlatch: the demo failed\n", p.stderr.String())
}

func TestDemoNeedsAServerThatAnswers(t *testing.T) {
	t.Parallel()
	got := finish(t, "", "demo", "--redis", nobody(t))
	require.Equal(t, 1, got.code)
	warning, rest, _ := strings.Cut(got.stderr, "\n")
	require.Contains(t, warning, "the password in --redis")
	oneLine(t, rest)
	require.Contains(t, rest, "cannot reach Redis")
	require.NotContains(t, got.stderr, "sesame")
	require.Equal(t, 1, finish(t, "", "demo", "--duration", "1ms").code)
}

func TestDemoThatIsInterruptedEndsCleanly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, _ := busyDemo(t, s)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	out := p.rest()
	require.Equal(t, 128+int(syscall.SIGINT), p.code(), "%s", out)
	require.Regexp(t, counterLine, out)
	require.Equal(t, "redlatch: interrupted\n", p.stderr.String())
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

func TestDemoThatIsKilledLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, lock := busyDemo(t, s)
	// Somebody takes the lock for good: workers who wait must notice, too.
	s.Do(t, "EVAL", "redis.call('del', KEYS[1]) return redis.call('hset', KEYS[1], 'other', 1)", 1, lock)
	require.Eventually(t, func() bool {
		count, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", codec.LockChannel(lock)), nil)
		require.NoError(t, err)
		return count[1] == int64(4)
	}, soon, pollEvery)
	require.NoError(t, p.cmd.Process.Kill())
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, pollEvery)
	_ = p.rest()
}

func TestDemoSaysWhenItsServerDies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, _ := busyDemo(t, s)
	s.Kill()
	_ = p.rest()
	require.Equal(t, 1, p.code())
	require.Positive(t, strings.Count(p.stderr.String(), "\n"))
	require.Contains(t, p.stderr.String(), "redlatch: worker ")
}
