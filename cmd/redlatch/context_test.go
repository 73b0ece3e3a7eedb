package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// configured writes a config file and returns the environment that names it.
func configured(t *testing.T, text string) (env []string, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return []string{"REDLATCH_CONFIG=" + path, "REDLATCH_CONTEXT=", "REDIS_URL=", "REDIS_PASSWORD="}, path
}

const servers = `current-context: dev
contexts:
  dev: {redis: "redis://dev.invalid"}
  prod: {redis: "rediss://prod.invalid", user: operator, password-file: /no/such/secret}
`

// Acting on another server than the one meant is the worst mistake: the nearest source decides.
func TestNearestSourceNamesServer(t *testing.T) {
	t.Parallel()
	env, path := configured(t, servers)
	for _, c := range []struct {
		env, args   []string
		redis, from string
	}{
		{nil, nil, "redis://dev.invalid:6379", "current context"},
		{[]string{"REDIS_URL=redis://url.invalid"}, nil, "redis://url.invalid:6379", "REDIS_URL"},
		{[]string{"REDIS_URL=redis://url.invalid", "REDLATCH_CONTEXT=prod"}, nil, "rediss://prod.invalid:6379", "REDLATCH_CONTEXT"},
		{[]string{"REDIS_URL=redis://url.invalid", "REDLATCH_CONTEXT=prod"}, []string{"--context", "dev"}, "redis://dev.invalid:6379", "--context"},
		{[]string{"REDIS_URL=redis://url.invalid", "REDLATCH_CONTEXT=prod"}, []string{"--redis", "redis://flag.invalid"}, "redis://flag.invalid:6379", "--redis"},
		{[]string{"REDLATCH_CONFIG=/dev/null"}, nil, "redis://127.0.0.1:6379", "default"},
	} {
		got := program.StartWith(t, append(env, c.env...), append(c.args, "context", "show", "-o", "json")...).Outcome(program.Soon)
		require.Zero(t, got.Code, got.Stderr)
		var shown struct{ Redis, From, User, Password string }
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &shown))
		require.Equal(t, c.redis, shown.Redis, c)
		require.Equal(t, c.from, shown.From, c)
		prod := strings.Contains(c.redis, "prod")
		require.Equal(t, prod, shown.User == "operator" && shown.Password == "file /no/such/secret", "credentials of another server: %v", got)
	}
	for line, says := range map[string]string{
		"--context dev --redis redis://h":   "--redis and --context are mutually exclusive",
		"--context= ":                       "--redis and --context must not be empty",
		"--redis= ":                         "--redis and --context must not be empty",
		"--context prd":                     "--context: context prd is not in " + path + ", which has dev, prod",
		"--context prod":                    "context prod: password-file: open /no/such/secret: no such file",
		"--context dev --user x":            "context dev: --user needs a password",
		"--context prod --password-file /x": "context prod: --password-file: open /x: no such file",
	} {
		got := program.StartWith(t, env, append(strings.Fields(line), "status", "x")...).Outcome(program.Soon)
		require.Equal(t, 2, got.Code, line)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, says, line)
	}
}

func TestContextConnectsAndErrorsNameIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">open sesame", "+@all", "~*", "&*")
	s.Do(t, "ACL", "SETUSER", "default", "off")
	env, path := configured(t, `contexts:
  good: {redis: "`+s.URL()+`", user: reader, password-command: [printf, 'open sesame\n']}
  bad: {redis: "`+s.URL()+`", user: reader, password-command: [sh, -c, 'echo sesame']}
  down: {redis: "redis://127.0.0.1:1"}
  broken: {}
`)
	run := func(args ...string) program.Outcome {
		return program.StartWith(t, env, args...).Outcome(2 * program.Soon)
	}
	require.Equal(t, program.Outcome{Stdout: "lock \"x\" is free\n"}, run("--context", "good", "status", "x"))
	require.Equal(t, program.Outcome{Stdout: "ran\n"}, run("run", "--context", "good", "x", "--", "echo", "ran"))
	for name, says := range map[string]string{"bad": "rejected the request: WRONGPASS", "down": "connection refused"} {
		got := run("--context", name, "status", "x")
		require.Equal(t, 1, got.Code)
		program.OneLine(t, got.Stderr)
		require.True(t, strings.HasPrefix(got.Stderr, "redlatch: context "+name+": "), got.Stderr)
		require.Contains(t, got.Stderr, says)
		require.Contains(t, got.Stderr, "redis://127.0.0.1:")
		require.NotContains(t, got.Stderr, "sesame")
	}
	got := run("context", "use", "good")
	require.Equal(t, "current context good: "+s.URL()+"\n", got.Stdout, got.Stderr)
	require.Equal(t, program.Outcome{Stdout: "lock \"x\" is free\n"}, run("status", "x"))
	require.Equal(t, "bad\nbroken\ndown\ngood\n", run("context", "list", "-o", "name").Stdout)
	require.Regexp(t, `(?m)^\*        good    `+s.URL()+`  +reader$`, run("context", "list").Stdout)
	require.Equal(t, "bad\t"+s.URL()+"\n", strings.SplitAfter(run("__complete", "--context", "").Stdout, "\n")[0])

	env = append(env, "REDIS_URL=redis://url.invalid")
	require.Equal(t, "redlatch: warning: REDIS_URL overrides the current context good: commands use redis://url.invalid:6379\n", run("context", "list").Stderr)
	require.NoError(t, os.Chmod(path, 0o622))
	require.Contains(t, run("--context", "good", "status", "x").Stderr, path+": other users can write this file")
}
