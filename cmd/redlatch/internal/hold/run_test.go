//go:build unix

package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

func heldHere(t *testing.T, s redistest.Target) string {
	t.Helper()
	client := program.Open(t, s)
	name := redistest.Key(t)
	hold, err := rlock.New(client, name).TryLock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Unlock() }) // some tests force the unlock
	return name
}

func TestRunExitsLikeCommandOrEnv(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, os.WriteFile(data, []byte("text"), 0o600))
	noFormat := filepath.Join(dir, "no-format")
	require.NoError(t, os.WriteFile(noFormat, []byte("neither script nor binary"), 0o700))
	noShell := filepath.Join(dir, "no-shell")
	require.NoError(t, os.WriteFile(noShell, []byte("#!/no/such/shell\n"), 0o700))
	for _, c := range []struct {
		what    string
		command []string
		code    int
		says    string
	}{
		{"success", []string{"true"}, 0, ""},
		{"its own code", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"killed by SIGKILL", []string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		{"no such path", []string{"/no/such/path"}, 127, "/no/such/path: no such file"},
		{"not executable", []string{data}, 126, "permission denied"},
		{"a directory", []string{dir}, 126, "is a directory"},
		{"unknown format", []string{noFormat}, 126, "exec format error"},
		{"unknown shell", []string{noShell}, 127, "no such file"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			got := program.Finish(t, s.URL(), append([]string{"run", name, "--"}, c.command...)...)
			require.Equal(t, c.code, got.Code, got.Stderr)
			if c.says == "" {
				require.Empty(t, got.Stderr)
			} else {
				program.OneLine(t, got.Stderr)
				require.Contains(t, got.Stderr, c.says)
			}
			require.EqualValues(t, 0, s.Do(t, "EXISTS", name), "the lock is left behind")
		})
	}
}

func TestRunHoldsLockOnlyWhileCommandRuns(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		p := program.Start(t, s.URL(), "run", name, "--", "sh", "-c", "echo up; cat; echo oops >&2")
		require.Equal(t, "up", p.Line())
		ttl, ok := s.Do(t, "PTTL", name).(int64)
		require.True(t, ok)
		require.InDelta(t, 30_000, ttl, 25_000)
		_, err := p.Stdin.Write([]byte("passed through\n"))
		require.NoError(t, err)
		require.NoError(t, p.Stdin.Close())
		require.Equal(t, "passed through\n", p.Rest())
		require.Equal(t, 0, p.Code())
		require.Equal(t, "oops\n", p.Stderr.String())
		require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
	})
}

func TestRunOnHeldLockExitsWithConflictCode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := heldHere(t, s)
	for _, c := range []struct {
		flags []string
		code  int
	}{
		{[]string{"--try"}, 124},
		{[]string{"--wait", "0s"}, 124},
		{[]string{"--wait", "1s"}, 124},
		{[]string{"--try", "--conflict-exit-code", "0"}, 0},
		{[]string{"--wait", "1ms", "--conflict-exit-code=75"}, 75},
	} {
		args := append(append([]string{"run"}, c.flags...), name, "--", "echo", "never")
		got := program.Fails(t, s.URL(), c.code, "; its lease ends in ", args...)
		require.Empty(t, got.Stdout)
		require.Regexp(t, ` in \S+ unless renewed\n$`, got.Stderr)
	}
}

func TestRefusedRunNamesHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		args        []string
		label, says string
	}{
		"run":     {[]string{"run", "-v", "NAME", "--", "sh", "-c", "echo up; read x"}, "", `sh@HOST pid \d+ \(OWNER\)`},
		"hold":    {[]string{"hold", "NAME"}, "", `redlatch hold@HOST pid \d+ \(OWNER\)`},
		"flag":    {[]string{"run", "--label", "nightly export", "NAME", "--", "sh", "-c", "echo up; read x"}, "", `nightly export \(OWNER\)`},
		"opt-out": {[]string{"hold", "--label", "", "NAME"}, "", "OWNER"},
		"hostile": {[]string{"hold", "--label", "", "NAME"}, "a\x1b[2J\nb", `"a\\x1b\[2J\\nb" \(OWNER\)`},
	} {
		lock := redistest.Key(t)
		for i := range c.args {
			c.args[i] = strings.Replace(c.args[i], "NAME", lock, 1)
		}
		p := program.StartWith(t, []string{"REDIS_URL=" + s.URL(), program.DefaultLabel}, c.args...)
		p.Line()
		fields, err := redis.Strings(s.Do(t, "HKEYS", lock), nil)
		require.NoError(t, err)
		require.Len(t, fields, 1)
		holder, err := codec.ParseOwner(fields[0])
		require.NoError(t, err)
		if c.label != "" {
			s.Do(t, "SET", engine.LabelKey(holder.Client()), c.label)
		}
		says := strings.NewReplacer("HOST", regexp.QuoteMeta(host), "OWNER", fields[0]).Replace(c.says)
		require.Eventually(t, func() bool {
			got := program.Finish(t, s.URL(), "run", "--try", lock, "--", "echo", "never")
			return regexp.MustCompile(`^redlatch: lock "` + lock + `" is held by ` + says + `; its lease ends in `).MatchString(got.Stderr)
		}, 10*time.Second, 50*time.Millisecond, "%s: %s", name, says)
		if name == "run" {
			require.NoError(t, p.Stdin.Close())
			require.Equal(t, 1, p.Code()) // of read
			require.Regexp(t, `^redlatch: lock "`+lock+`" on `+s.URL()+` is held by `+says+`\n$`, p.Stderr.String())
		}
		_ = p.Cmd.Process.Kill()
	}
	got := program.Fails(t, s.URL(), 125, "--label: the label", "run", "--label", "two\nlines", "x", "--", "true")
	require.Empty(t, got.Stdout)
}

// The wait may never end, because its holder waits for the outer lock.
func TestNestedRunReportsItsWait(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	outer, held := redistest.Key(t), program.HeldBy(t, s, program.SomeOwner, time.Hour)
	semaphore := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", outer, "--", "sh", "-c", exe+" run "+held+" -- true 2>&1")
	q := program.Start(t, s.URL(), "run", redistest.Key(t), "--",
		exe, "run", "--permits", semaphore+":1", "--", "sh", "-c", exe+" run "+held+" -- true 2>&1")
	require.Equal(t, fmt.Sprintf("redlatch: waiting for lock %q inside %q; `redlatch status %s` shows its holder", held, outer, held), p.Line())
	require.Contains(t, q.Line(), fmt.Sprintf("waiting for lock %q inside %q; ", held, semaphore))
	s.Do(t, "DEL", held)
	s.Do(t, "PUBLISH", codec.LockChannel(held), 0)
	require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	require.Equal(t, program.Outcome{}, q.Outcome(program.Soon))
}

func TestRunOutsideHoldWaitsSilently(t *testing.T) {
	testlevel.All(t, "it waits for two seconds; TestNestedRunReportsItsWait covers the report")
	t.Parallel()
	s := redistest.Shared(t)
	got := program.Finish(t, s.URL(), "run", "--wait", "2s", program.HeldBy(t, s, program.SomeOwner, time.Hour), "--", "true")
	require.Equal(t, 124, got.Code)
	require.NotContains(t, got.Stderr, "waiting")
}

func TestRunFailureExits125WithNextStep(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	notALock := redistest.Key(t)
	s.Do(t, "SET", notALock, "text")
	run := func(args ...string) []string { return append([]string{"run"}, args...) }
	for _, c := range []struct {
		what, url string
		args      []string
		says      string
	}{
		{"no server", program.NoServer(t), run("x", "--", "true"), "connection refused. Start one, or set --redis or REDIS_URL; `redlatch serve --addr 127.0.0.1:"},
		{"no server, --try", program.NoServer(t), run("--try", "x", "--", "true"), "cannot reach Redis at redis://127.0.0.1:"},
		{"no address", "user:sesame@host:6379", run("x", "--", "true"), "the scheme is missing: write redis://"},
		{"no lock", s.URL(), run(notALock, "--", "true"), "holds a string, and a lock is a hash: another program uses this name"},
		{"no name", s.URL(), run("", "--", "true"), "name"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			program.Fails(t, c.url, 125, c.says, c.args...)
		})
	}
}

func TestFindCommandDistinguishesMissingFromNotRunnable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700))
	path, err := findCommand("tool")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "tool"), path)
	for _, c := range []struct {
		name string
		code int
		is   error
	}{
		{"data", cli.CodeNotRunnable, fs.ErrPermission},
		{dir + "/missing", cli.CodeNotFound, fs.ErrNotExist},
		{"no-such-command-anywhere", cli.CodeNotFound, nil},
		{"", cli.CodeNotFound, nil},
	} {
		var failed *cli.ExitError
		_, err := findCommand(c.name)
		require.ErrorAs(t, err, &failed, c.name)
		require.Equal(t, c.code, failed.Code, c.name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
}

func TestStartCodeMatchesFailure(t *testing.T) {
	t.Parallel()
	at := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: "/x", Err: err} }
	require.Equal(t, cli.CodeNotFound, startCode(at(syscall.ENOENT)))
	require.Equal(t, cli.CodeNotRunnable, startCode(at(syscall.ENOEXEC)))
	require.Equal(t, cli.CodeNotRunnable, startCode(at(syscall.EACCES)))
	require.Equal(t, cli.CodeRunFailed, startCode(at(syscall.EAGAIN)))
	require.Equal(t, "exec format error", cause(at(syscall.ENOEXEC)).Error())
	plain := errors.New("plain")
	require.Equal(t, plain, cause(plain))
}
