package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// onlooker starts a server with the user that the manual gives to those who look, and
// returns the user's URL.
func onlooker(t *testing.T) (*redistest.Server, string) {
	t.Helper()
	manual, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, command, found := strings.Cut(string(manual), "\nACL SETUSER onlooker ")
	require.True(t, found, "the manual no longer shows the command")
	command, _, found = strings.Cut(command, "```")
	require.True(t, found)
	args := []any{"SETUSER", "onlooker"}
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	s := redistest.Start(t)
	s.Do(t, "ACL", args...)
	return s, "redis://onlooker:password@" + s.Addr()
}

func TestAUserOfTheManualMayLook(t *testing.T) {
	t.Parallel()
	s, url := onlooker(t)
	const name = "app:billing-run"
	queued(t, s, name, redisson, time.Hour)
	listening(t, s, name, redisson)
	s.Do(t, "HSET", name, someOwner, 1)
	s.Do(t, "SET", label.Key(goID), labelText)
	queued(t, s, name, goID.String()+":1", time.Hour)

	queued(t, s, "app:stuck", redisson, time.Hour)
	s.Do(t, "HSET", "app:books", "mode", "read", redisson, 1)
	got := finish(t, url, "list")
	require.Equal(t, 0, got.code, got.stderr)
	require.Empty(t, got.stderr)
	require.Regexp(t, name+` +fair +Redlatch 00000001:7 +1 +none +2\n`, got.stdout)
	require.Regexp(t, `app:books +r/w +Redisson 0b8f3a11:57 +1 +none +-\n`, got.stdout)
	require.Regexp(t, `app:stuck +fair +free +- +- +1\n  next   Redisson 0b8f3a11:57\n`, got.stdout)
	got = finish(t, url, "status", name)
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "subscribed yes, Redisson")
	require.Contains(t, got.stdout, "subscribed no, Redlatch")
	require.Contains(t, words(got.stdout), `label "`+labelText+`"`)
	s.Do(t, "RPUSH", "app:list", "x")
	require.Contains(t, finish(t, url, "status", "app:list").stderr, "holds a list")

	for _, pattern := range []string{name, "app:*"} {
		p := start(t, url, "watch", "--json", pattern)
		events(p, "held")
		s.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
		s.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}:"+redisson, "0")
		told := events(p, "woken")
		require.Equal(t, name, told[len(told)-1]["name"])
		require.NoError(t, p.cmd.Process.Signal(interrupt))
		got := p.outcome(soon)
		require.Equal(t, codeInterrupted, got.code)
		require.Empty(t, got.stderr)
	}
}
