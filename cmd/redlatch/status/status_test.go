package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestStatusPrintsText(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		free, held := redistest.Key(t), redistest.Key(t)
		s.Do(t, "HSET", held, program.SomeOwner, 2)
		s.Do(t, "PEXPIRE", held, 60_000)

		got := program.Finish(t, s.URL(), "status", free)
		require.Equal(t, program.Outcome{Code: 0, Stdout: "lock \"" + free + "\" is free\n", Stderr: ""}, got)

		got = program.Finish(t, s.URL(), "status", held)
		require.Equal(t, 0, got.Code)
		require.Regexp(t, `^lock "`+held+`" is held
  owner  `+program.SomeOwner+`   count 2
         Redlatch since `+program.RedlatchSince+`
  lease  (1m0|5\d(\.\d)?)s left, fixed or renewed \(--for 2\ds would show\)
$`, got.Stdout)
		program.Narrow(t, strings.TrimPrefix(got.Stdout, "lock \""+held))

		s.Do(t, "PERSIST", held)
		require.Contains(t, program.Finish(t, s.URL(), "status", held).Stdout, "  lease  none: it stays until it is released\n")
	})
}

func TestStatusPrintsJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	got := program.Finish(t, s.URL(), "status", "--json", name)
	require.JSONEq(t, `{"name":"`+name+`","held":false,"holders":[],"ttl_ms":null,"queue_length":0,"queue":[]}`, got.Stdout)
	s.Do(t, "HSET", name, program.SomeOwner, 2)
	got = program.Finish(t, s.URL(), "status", "--json", name)
	require.JSONEq(t, `{"name":"`+name+`","kind":"plain","held":true,"holders":[{"owner":"`+program.SomeOwner+`","count":2,"client":"redlatch","client_started":"2024-12-21T01:06:31.296Z"}],"ttl_ms":null,"no_ttl":true,"queue_length":0,"queue":[]}`, got.Stdout)
	s.Do(t, "PEXPIRE", name, 60_000)
	got = program.Finish(t, s.URL(), "status", "--json", name)
	require.Equal(t, 0, got.Code)
	require.Regexp(t, `"ttl_ms": (5\d\d\d\d|60000),\n`, got.Stdout)
	text, err := inspect.Count("many").MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `"many"`, string(text), "unlock shows what is no lock as it is")
}

func TestStatusExitsWithOneWhenItFails(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	notALock := redistest.Key(t)
	s.Do(t, "RPUSH", notALock, "text")
	noQueue, noDeadlines := redistest.Key(t), redistest.Key(t)
	s.Do(t, "SET", codec.QueueKey(noQueue), "text")
	s.Do(t, "SADD", codec.TimeoutKey(noDeadlines), "text")
	for _, c := range []struct{ url, name, says string }{
		{s.URL(), notALock, "holds a list, and a lock is a hash"},
		{s.URL(), noQueue, "holds a string, and the queue of a fair lock is a list"},
		{s.URL(), noDeadlines, "holds a set, and the deadlines of a fair lock are a zset"},
		{s.URL(), "", "name"},
		{program.NoServer(t), "x", "connection refused. Start one"},
		{"sesame", "x", "the scheme is missing"},
	} {
		got := program.Finish(t, c.url, "status", c.name)
		code := 1
		if c.name == "" || c.url == "sesame" {
			code = 2
		}
		require.Equal(t, code, got.Code, c.says)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, c.says)
		require.NotContains(t, got.Stderr, "sesame")
	}
}

func TestTheExitCodeTellsHeldFromFree(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	free, held := redistest.Key(t), program.HeldBy(t, s, program.SomeOwner, time.Minute)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{free}, 0},
		{[]string{"--exit-code", held}, 0},
		{[]string{"--exit-code", free}, 3},
		{[]string{"--exit-code", "--json", free}, 3},
	} {
		got := program.Finish(t, s.URL(), append([]string{"status"}, c.args...)...)
		require.Equal(t, c.code, got.Code, c.args)
		require.Empty(t, got.Stderr)
		require.NotEmpty(t, got.Stdout)
	}
	require.Equal(t, 1, program.Finish(t, program.NoServer(t), "status", "--exit-code", free).Code)
}
