package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
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
		"--context dev --user= ":            "--user and --password-file must not be empty",
		"--context dev --password-file= ":   "--user and --password-file must not be empty",
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

// A password is only sent to its server and for its user.
func TestPasswordBelongsToUserAndServer(t *testing.T) {
	t.Parallel()
	env, _ := configured(t, `contexts:
  prod: {redis: "redis://prod.invalid", user: operator, password-file: secret}
  address: {redis: "redis://operator@prod.invalid", password-command: [pass]}
  open: {redis: "redis://open.invalid"}
`)
	env = append(env, "REDIS_PASSWORD=sesame")
	for line, want := range map[string]string{
		"--context prod":                             "file /",
		"--context prod --user operator":             "file /",
		"--context prod --user other":                "REDIS_PASSWORD",
		"--context address --user operator":          "command pass",
		"--context address --user other":             "REDIS_PASSWORD",
		"--context open":                             "",
		"--context open --user other":                "REDIS_PASSWORD",
		"--context open --password-file /x":          "file /x",
		"--redis redis://h":                          "REDIS_PASSWORD",
		"--context prod --password-file /x":          "file /x",
		"--context prod --user a --password-file /x": "file /x",
	} {
		got := program.StartWith(t, env, append(strings.Fields(line), "context", "show", "-o", "json")...).Outcome(program.Soon)
		require.Zero(t, got.Code, got.Stderr)
		var shown struct{ Password string }
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &shown))
		require.True(t, strings.HasPrefix(shown.Password, want) && (want != "") == (shown.Password != ""), "%s: %s", line, shown.Password)
	}
}

// A hint that leads to another server would make the operator act there.
func TestHintsLeadToServer(t *testing.T) {
	t.Parallel()
	master, replica, closed := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("wrong"), 0o600))
	closed.Do(t, "CONFIG", "SET", "requirepass", "sesame")
	host, port, err := net.SplitHostPort(strings.TrimPrefix(master.URL(), "redis://"))
	require.NoError(t, err)
	master.Do(t, "LPUSH", "list", 1)
	replica.Do(t, "REPLICAOF", host, port)
	env, _ := configured(t, `contexts:
  of us: {redis: "`+master.URL()+`"}
  replica: {redis: "`+replica.URL()+`"}
  down: {redis: "redis://127.0.0.1:1"}
  wrong: {redis: "`+closed.URL()+`", user: default, password-file: `+secret+`}
  none: {redis: "`+closed.URL()+`"}
  user: {redis: "`+closed.URL()+`", user: default}
`)
	master.Do(t, "RPUSH", codec.QueueKey("queue"), program.RedissonOwner, program.SomeOwner, program.LongOwner(1))
	for line, says := range map[string]string{
		"--context=of+us status queue --for=10ms":                         "`redlatch --context 'of us' evict ",
		"--context=of+us evict queue " + program.LongOwner(1):             "`redlatch --context 'of us' evict --all-dead queue`",
		"--context=replica unlock --force --yes x":                        "use its master: set the context's redis key to redis://",
		"--context=down status x":                                         "or set the context's redis key; `redlatch serve --addr 127.0.0.1:1` starts",
		"--context=wrong status x":                                        "Check the user (the context's user key) and password (file " + secret + ").",
		"--context=user status x":                                         "the context's user key needs a password: the context's password-file or password-command key (any, ",
		"--context=none status x":                                         "and password: the context's user key, and the context's password-file or password-command key.",
		"--context=none --user=a --password-file=" + secret + " status x": "Check the user (--user, or in the address) and password (REDIS_PASSWORD or --password-file)",
		"--context=of+us evict x " + program.RedissonOwner:                "`redlatch --context 'of us' status x` shows the queue",
	} {
		args := strings.Fields(line)
		args[0] = strings.ReplaceAll(args[0], "+", " ")
		got := program.StartWith(t, env, args...).Outcome(2 * program.Soon)
		text := program.Words(got.Stdout + got.Stderr)
		require.Contains(t, text, says, line)
		require.NotContains(t, text, "--redis", line)
	}
	for login, user := range map[string]string{"": "", "default:sesame@": " --user 'default'"} {
		address := strings.Replace(master.URL(), "redis://", "redis://"+login, 1)
		got := program.StartWith(t, env, "--redis="+address, "status", "queue", "--for=10ms").Outcome(2 * program.Soon)
		require.Contains(t, program.Words(got.Stdout), "`redlatch"+user+" --redis '"+master.URL()+"' evict ", got)
	}
	lone := strings.Replace(closed.URL(), "redis://", "redis://sesame@", 1) // a password, not a user
	got := program.StartWith(t, env, "--redis="+lone, "status", "x*").Outcome(2 * program.Soon)
	require.Contains(t, got.Stderr, "all users of this machine can read the password")
	require.Contains(t, got.Stderr, "`redlatch --redis '"+closed.URL()+"' list 'x*'`")
	got = program.StartWith(t, append(env, "REDIS_URL="), "--redis="+lone, "run", "x", "--", "sh", "-c", "echo url=$REDIS_URL").Outcome(2 * program.Soon)
	require.Equal(t, "url=\n", got.Stdout)
}

func TestNeedlessPasswordHintNamesItsSource(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	env, path := configured(t, `contexts: {dev: {redis: "`+s.URL()+`", password-file: secret}}`)
	secret := filepath.Join(filepath.Dir(path), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("any"), 0o600))
	for line, says := range map[string]string{
		"--context=dev": "The server has no password: remove the context's password-file or password-command key.\n",
		"--context=dev --password-file=" + secret:                                "The server has no password: remove --password-file.\n",
		"--redis=" + strings.Replace(s.URL(), "redis://", "redis://:sesame@", 1): "or the password in the address.\n",
	} {
		got := program.StartWith(t, env, append(strings.Fields(line), "status", "x")...).Outcome(2 * program.Soon)
		require.Equal(t, 1, got.Code, line)
		require.Contains(t, got.Stderr, says, line)
	}
}

// The command of run may contain redlatch, which must not act on another server.
func TestHeldCommandsInheritServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	env, path := configured(t, `{current-context: prod, contexts: {prod: {redis: "redis://prod.invalid"}, dev: {redis: "`+s.URL()+`"},
  safe: {redis: "`+s.URL()+`", user: default, password-file: secret}}}`)
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		env, flags []string
		context    string
	}{
		{nil, []string{"--context", "dev"}, "dev"},
		{nil, []string{"--redis", s.URL()}, ""},
		{[]string{"REDLATCH_CONTEXT=prod"}, []string{"--context", "dev"}, "dev"},
		{[]string{"REDLATCH_CONTEXT=prod"}, []string{"--redis", s.URL()}, ""},
		{[]string{"REDLATCH_CONTEXT=dev"}, nil, "dev"},
		{[]string{"REDIS_URL=" + s.URL()}, nil, ""},
	} {
		env := append(env[:len(env):len(env)], c.env...)
		show := exe + " context show -o json"
		run := program.StartWith(t, env, append(c.flags, "run", "job", "--", "sh", "-c", show)...).Outcome(2 * program.Soon)
		script := exec.Command("sh", "-c", `eval "$(`+strings.Join(append([]string{exe}, c.flags...), " ")+` hold -s script)" && `+show+" && "+exe+" release")
		script.Env = append(append(os.Environ(), program.Env+"=1"), env...)
		out, err := script.Output()
		require.NoError(t, err)
		for _, text := range []string{run.Stdout, string(out)} {
			var shown struct{ Redis, Name string }
			require.NoError(t, json.Unmarshal([]byte(text), &shown), run.Stderr)
			require.Equal(t, s.URL(), shown.Redis, c)
			require.Equal(t, c.context, shown.Name, c)
		}
	}
	secret := filepath.Join(filepath.Dir(path), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("any"), 0o600))
	for line, want := range map[string]string{
		"redis://app.invalid --redis=" + s.URL(): "redis://app.invalid,", // the application's server
		"redis://app.invalid --context=dev":      "redis://app.invalid,dev",
		" --context=dev":                         s.URL() + ",dev",
		" --context=safe":                        ",safe",
	} {
		url, flag, _ := strings.Cut(line, " ")
		got := program.StartWith(t, append(env[:len(env):len(env)], "REDIS_URL="+url, "REDLATCH_CONTEXT=prod"), flag, "run", "job", "--",
			"sh", "-c", `echo "$REDIS_URL,$REDLATCH_CONTEXT"`).Outcome(2 * program.Soon)
		require.Equal(t, program.Outcome{Stdout: want + "\n"}, got, line)
	}
}

// redlatch context use in a terminal must not move cron jobs.
func TestRunAndHoldIgnoreCurrentContext(t *testing.T) {
	t.Parallel()
	env, _ := configured(t, servers)
	for _, line := range []string{"run x -- echo ran", "hold x", "hold -s x"} {
		got := program.StartWith(t, env, strings.Fields(line)...).Outcome(2 * program.Soon)
		require.Equal(t, 125, got.Code, line)
		require.NotContains(t, got.Stdout, "ran")
		require.Equal(t, "redlatch: context dev: run and hold do not use the current context: "+
			"name the server with --context, --redis, REDLATCH_CONTEXT or REDIS_URL\n", got.Stderr, line)
	}
}

func TestContextConnectsAndErrorsNameIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">open sesame", "+@all", "~*", "&*")
	s.Do(t, "ACL", "SETUSER", "default", "off")
	env, path := configured(t, `contexts:
  good: {redis: "`+s.URL()+`", user: reader, password-command: [cat, secret]}
  bad: {redis: "`+s.URL()+`", user: reader, password-command: [sh, -c, 'echo sesame']}
  down: {redis: "redis://127.0.0.1:1"}
  broken: {}
  failing: {redis: "`+s.URL()+`", password-command: ["false"]}
`)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "secret"), []byte("open sesame\n"), 0o600))
	run := func(args ...string) program.Outcome {
		return program.StartWith(t, env, args...).Outcome(2 * program.Soon)
	}
	require.Equal(t, program.Outcome{Stdout: "lock \"x\" is free\n"}, run("--context", "good", "status", "x"))
	require.Equal(t, program.Outcome{Stdout: "ran\n"}, run("run", "--context", "good", "x", "--", "echo", "ran"))
	for name, says := range map[string]string{"bad": "rejected the request: WRONGPASS", "down": "connection refused", "failing": "password-command false: exit status 1"} {
		got := run("--context", name, "status", "x")
		require.Equal(t, 1, got.Code, name)
		program.OneLine(t, got.Stderr)
		require.True(t, strings.HasPrefix(got.Stderr, "redlatch: context "+name+": "), got.Stderr)
		require.Contains(t, got.Stderr, says)
		require.Equal(t, name != "failing", strings.Contains(got.Stderr, "redis://127.0.0.1:"))
		require.NotContains(t, got.Stderr, "sesame")
	}
	got := run("context", "use", "good")
	require.Equal(t, "current context good: "+s.URL()+"\n", got.Stdout, got.Stderr)
	require.Equal(t, program.Outcome{Stdout: "lock \"x\" is free\n"}, run("status", "x"))
	require.Equal(t, "bad\nbroken\ndown\nfailing\ngood\n", run("context", "list", "-o", "name").Stdout)
	require.Regexp(t, `(?m)^\*        good     `+s.URL()+`  +reader$`, run("context", "list").Stdout)
	require.Equal(t, "bad\t"+s.URL()+"\n", strings.SplitAfter(run("__complete", "--context", "").Stdout, "\n")[0])

	env = append(env, "REDIS_URL=redis://url.invalid")
	require.Equal(t, "redlatch: warning: REDIS_URL overrides the current context good: commands use redis://url.invalid:6379\n", run("context", "list").Stderr)
	require.NoError(t, os.Chmod(path, 0o622))
	require.Contains(t, run("--context", "good", "status", "x").Stderr, path+": other users can write this file")
}

func TestMissingConfigFileIsReported(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := []string{"XDG_CONFIG_HOME=" + home, "REDLATCH_CONFIG=", "REDLATCH_CONTEXT=", "REDIS_URL="}
	file := filepath.Join(home, "redlatch", "config.yaml")
	got := program.StartWith(t, env, "context", "list").Outcome(program.Soon)
	require.Equal(t, program.Outcome{Stderr: "redlatch: no contexts in " + file + ", which does not exist; see redlatch context --help\n"}, got)
	got = program.StartWith(t, env, "--context", "prod", "list").Outcome(program.Soon)
	require.Equal(t, 2, got.Code)
	require.Equal(t, "redlatch: --context: context prod: the config file "+file+" does not exist\n", got.Stderr)
}
