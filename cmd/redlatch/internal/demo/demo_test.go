//go:build unix

package demo

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

var (
	counterLine  = regexp.MustCompile(`(?m)^  counter     [1-9]\d*, as many as rounds were finished$`)
	takeOverLine = regexp.MustCompile(`(?m)^  take-over   worker \d, [\d.]+s after the kill`)
)

// requireGreen checks the summary of a run in which all went well.
func requireGreen(t *testing.T, got program.Outcome) {
	t.Helper()
	require.Equal(t, 0, got.Code, "%s%s", got.Stdout, got.Stderr)
	require.Empty(t, got.Stderr)
	require.Regexp(t, counterLine, got.Stdout)
	require.Contains(t, got.Stdout, "\n  two inside  never\n")
	require.Regexp(t, takeOverLine, got.Stdout)
	require.Contains(t, got.Stdout, "\nOK: ")
	require.NotContains(t, got.Stdout, "\x1b", "an escape sequence, and no terminal")
	_, summary, _ := strings.Cut(got.Stdout, "\n\n")
	program.Fits(t, summary)
}

func TestDemoIsGreenOnAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	// REDIS_URL is not looked at.
	requireGreen(t, program.Finish(t, program.NoServer(t), "demo", "--duration", "1s"))
}

func TestDemoIsGreenOnAnotherServerAndLeavesNothingThere(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	requireGreen(t, program.Finish(t, program.NoServer(t), "demo", "--duration", "1s", "--redis", s.URL()))
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, program.Soon, program.PollEvery)
}

func TestDemoIsRedWithoutTheLock(t *testing.T) {
	t.Parallel()
	p := program.StartWith(t, []string{brokenEnv + "=1"}, "demo", "--duration", "1s")
	out := p.Rest()
	require.Equal(t, 1, p.Code())
	require.Contains(t, out, "WRONG: the counter is ")
	require.Contains(t, out, "WRONG: two were inside, seen ")
	require.NotContains(t, out, "OK:")
	require.Equal(t, "redlatch: the demo failed\n", p.Stderr.String())
}

func TestDemoNeedsAServerThatAnswers(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, "", "demo", "--redis", program.NoServer(t))
	require.Equal(t, 1, got.Code)
	warning, rest, _ := strings.Cut(got.Stderr, "\n")
	require.Contains(t, warning, "the password in --redis")
	program.OneLine(t, rest)
	require.Contains(t, rest, "cannot reach Redis")
	require.NotContains(t, got.Stderr, "sesame")
	require.Equal(t, 2, program.Finish(t, "", "demo", "--duration", "1ms").Code)
}

func TestDemoThatIsInterruptedEndsCleanly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, _ := program.BusyDemo(t, s)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	out := p.Rest()
	require.Equal(t, 128+int(syscall.SIGINT), p.Code(), "%s", out)
	require.Regexp(t, counterLine, out)
	require.Equal(t, "redlatch: interrupted\n", p.Stderr.String())
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

func TestDemoThatIsKilledLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, lock := program.BusyDemo(t, s)
	// Another client takes the lock and never releases it: waiting workers must notice the
	// kill, too.
	s.Do(t, "EVAL", "redis.call('del', KEYS[1]) return redis.call('hset', KEYS[1], 'other:1', 1)", 1, lock)
	program.AwaitSubscribers(t, s, codec.LockChannel(lock), 4)
	require.NoError(t, p.Cmd.Process.Kill())
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, program.Soon, program.PollEvery)
	_ = p.Rest()
}

func TestDemoSaysWhenItsServerDies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, _ := program.BusyDemo(t, s)
	s.Kill()
	_ = p.Rest()
	require.Equal(t, 1, p.Code())
	require.Positive(t, strings.Count(p.Stderr.String(), "\n"))
	require.Regexp(t, `^redlatch: (worker \d: |cannot reach Redis)`, p.Stderr.String())
}
