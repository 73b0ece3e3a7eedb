//go:build unix

package hold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestRunReadsTogetherAndWritesAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	reader := program.Start(t, s.URL(), "run", "--read", name, "--", "sh", "-c", "echo in; read end; echo out")
	require.Equal(t, "in", reader.Line())
	got := program.Finish(t, s.URL(), "run", "--read", "--try", name, "--", "echo", "too")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "too\n"}, got)
	got = program.Finish(t, s.URL(), "run", "--write", "--try", name, "--", "echo", "never")
	require.Equal(t, 124, got.Code)
	require.NoError(t, reader.Stdin.Close())
	require.Equal(t, "out", reader.Line())
	got = program.Finish(t, s.URL(), "run", "--write", "--at-least", "1h", name, "--", "true")
	require.Equal(t, program.Outcome{}, got)
	got = program.Finish(t, s.URL(), "run", "--read", "--try", name, "--", "echo", "never")
	require.Equal(t, 124, got.Code)
	require.Contains(t, got.Stderr, "is held by another owner")
}

func TestRunRefusesRolesOfOtherKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, flags := range [][]string{{"--read", "--write"}, {"--read", "--fair"}, {"--write", "--fenced"}} {
		got := program.Finish(t, s.URL(), append(append([]string{"run"}, flags...), "name", "--", "true")...)
		require.Equal(t, 125, got.Code)
		require.Contains(t, got.Stderr, "contradict each other")
	}
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.RedissonOwner, 1)
	program.Fails(t, s.URL(), 125, "no read/write lock, such as a plain lock of this name", "run", "--write", name, "--", "true")
}
