//go:build unix

package hold

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestRunPermitsLimitsHowManyRun(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t) + ":jobs"
	run := func(n string, command ...string) []string {
		return append([]string{"run", "--permits", name + ":" + n, "--try", "--"}, command...)
	}
	first := program.Start(t, s.URL(), run("2", "sh", "-c", "echo in; read line; echo out")...)
	require.Equal(t, "in", first.Line())
	// What a run around it has set is not this permit's.
	exe, err := os.Executable()
	require.NoError(t, err)
	inner := append([]string{exe, "--redis", s.URL()}, run("2", "sh", "-c", `echo "$REDLATCH_LOCK $REDLATCH_PERMIT$REDLATCH_OWNER$REDLATCH_TOKEN"`)...)
	out := program.OK(t, s.URL(), append([]string{"run", "--fenced", redistest.Key(t) + ":outer", "--"}, inner...)...)
	lock, id, _ := strings.Cut(strings.TrimSpace(out), " ")
	require.Equal(t, name, lock)
	require.Len(t, id, 32)
	require.EqualValues(t, 1, s.Do(t, "ZCARD", codec.PermitsKey(name)), "the second is back")
	program.Fails(t, s.URL(), 124, ": its one permit is taken\n", run("1", "echo", "never")...)
	require.Equal(t, []byte("0"), s.Do(t, "GET", name), "the number has changed, the first has its permit")
}

func TestRunPermitsRunsAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for range 3 {
		got := program.Finish(t, s.URL(), "run", "--permits", name+":2", "--try", "--", "echo", "in")
		require.Equal(t, program.Outcome{Stdout: "in\n"}, got)
	}
}

// A number that may be that of something else, such as a counter or a latch, is left alone.
func TestRunPermitsLeavesANumberOfSomethingElse(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "SET", name, 48213)
	program.Fails(t, s.URL(), 125, "holds the number 48213, and no permit is taken", "run", "--permits", name+":5", "--", "true")
	require.Equal(t, []byte("48213"), s.Do(t, "GET", name))
}

func TestRunRefusesPermitsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, args := range [][]string{
		{"--permits", "name", "--", "true"},
		{"--permits", "name:", "--", "true"},
		{"--permits", ":3", "--", "true"},
		{"--permits", "name:0", "--", "true"},
		{"--permits", "name:-1", "--", "true"},
		{"--permits", "name:2147483648", "--", "true"},
		{"--permits", "", "--", "true"},
		{"--permits", "name:3", "name", "--", "true"},
		{"--permits", "name:3", "--"},
		{"--permits", "name:3", "--fair", "--", "true"},
		{"--permits", "name:3", "--read", "--", "true"},
		{"--permits", "name:3", "--at-least", "1m", "--", "true"},
	} {
		got := program.Finish(t, s.URL(), append([]string{"run"}, args...)...)
		require.Equal(t, 125, got.Code, args)
		program.OneLine(t, got.Stderr)
	}
	for line, says := range map[string]string{
		"--permits a x --":          "--permits NAME:N stands in place of NAME: leave x out",
		"--permits a:1 x -- true":   "--permits NAME:N stands in place of NAME: leave x out",
		"--permits a:1 --":          "COMMAND is missing behind --",
		"--permits a -- true":       `--permits must be NAME:N, such as crawl:5, with N from 1 to 2147483647, not "a"`,
		"job --":                    "COMMAND is missing behind --",
		"-- true":                   "NAME is missing before --",
		"job ./report.sh -- --full": "./report.sh stands before --: what comes behind it is COMMAND and its arguments",
		"--permits a:1 sh ./a.sh":   "NAME or --permits comes before --, and COMMAND behind it",
		"job sh -c ./a.sh":          "unknown shorthand flag: 'c' in -c. `redlatch run --help` lists the flags. COMMAND and its flags come behind --\n",
	} {
		program.Fails(t, s.URL(), 125, "redlatch: "+says, append([]string{"run"}, strings.Fields(line)...)...)
	}
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.RedissonOwner, 1)
	got := program.Finish(t, s.URL(), "run", "--permits", name+":3", "--", "true")
	require.Equal(t, 125, got.Code)
	require.Contains(t, got.Stderr, "no semaphore, such as a lock of this name")
}

// The rights that a user lacks are those of semaphores.
func TestRunNamesTheRightsOfPermitsThatAreMissing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "The clocks"})
	args := []string{"run", "--try", "--permits", "app:job:1", "--", "echo", "in"}
	got := program.Finish(t, url, args...)
	require.Equal(t, 125, got.Code)
	program.OneLine(t, got.Stderr)
	require.Regexp(t, `The user lacks [^.]*\+zadd [^.]*~redisson_sc:\{app:job\* `, got.Stderr)
	got = program.Finish(t, s.GiveRights(t, []string{"Plain locks", "The clocks", "Semaphores"}), args...)
	require.Equal(t, program.Outcome{Stdout: "in\n"}, got)
}
