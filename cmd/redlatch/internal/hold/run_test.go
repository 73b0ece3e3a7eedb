//go:build unix

package hold

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// heldHere holds a lock of its own in the test's process and returns its name.
func heldHere(t *testing.T, s redistest.Target) string {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	name := redistest.Key(t)
	hold, err := rlock.New(client, name).TryLock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Unlock() }) // some tests take it away
	return name
}

// awaitWaiter waits until the lock's channel has a listener.
func awaitWaiter(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, channel := range s.Channels(t) {
			if channel == codec.LockChannel(name) {
				return true
			}
		}
		return false
	}, program.Soon, program.PollEvery)
}

func TestRunExitsAsTheCommandOrAsEnvDoes(t *testing.T) {
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
		{"its own high code", []string{"sh", "-c", "exit 255"}, 255, ""},
		{"killed by SIGTERM", []string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		{"killed by SIGKILL", []string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		{"no such command", []string{"no-such-command-anywhere"}, 127, "no-such-command-anywhere"},
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

func TestRunHoldsTheLockWhileTheCommandRunsAndNoLonger(t *testing.T) {
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

func TestRunOnALockThatIsHeldExitsWithTheConflictCode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := heldHere(t, s)
	for _, c := range []struct {
		flags []string
		code  int
	}{
		{[]string{"--try"}, 124},
		{[]string{"--wait", "0s"}, 124},
		{[]string{"--wait", "300ms"}, 124},
		{[]string{"--try", "--conflict-exit-code", "0"}, 0},
		{[]string{"--wait", "1ms", "--conflict-exit-code=75"}, 75},
	} {
		args := append(append([]string{"run"}, c.flags...), name, "--", "echo", "never")
		require.Empty(t, program.Fails(t, s.URL(), c.code, "is held by another owner, for ", args...).Stdout)
	}
}

func TestRunWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	first := program.Start(t, s.URL(), "run", name, "--", "sh", "-c", "echo up; cat")
	require.Equal(t, "up", first.Line())
	second := program.Start(t, s.URL(), "run", "--wait", "1m", name, "--", "echo", "in")
	awaitWaiter(t, s, name)
	require.NoError(t, first.Stdin.Close())
	require.Equal(t, "in", second.Line())
	require.Equal(t, 0, first.Code())
	require.Equal(t, 0, second.Code())
}

func TestRunFailsWith125AndOneLineThatSaysWhatToDo(t *testing.T) {
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
		{"no server", program.NoServer(t), run("x", "--", "true"), "connection refused. Start one, or set --redis or REDIS_URL; `redlatch serve`"},
		{"no server, --try", program.NoServer(t), run("--try", "x", "--", "true"), "cannot reach Redis at redis://127.0.0.1:"},
		{"no address", "user:sesame@host:6379", run("x", "--", "true"), "the scheme is missing: write redis://"},
		{"no lock", s.URL(), run(notALock, "--", "true"), "holds a string, and a lock is a hash: something else uses this name"},
		{"no name", s.URL(), run("", "--", "true"), "name"},
		{"no command", s.URL(), run("x", "--"), "Usage: redlatch run"},
		{"no dashes", s.URL(), run("x", "true"), "Usage: redlatch run"},
		{"two names", s.URL(), run("x", "y", "--", "true"), "Usage: redlatch run"},
		{"unknown flag", s.URL(), run("--forever", "x", "--", "true"), "unknown flag"},
		{"no duration", s.URL(), run("--wait", "5", "x", "--", "true"), "a time has a unit, such as 10s, 500ms or 1h30m"},
		{"try and wait", s.URL(), run("--try", "--wait", "1s", "x", "--", "true"), "contradict"},
		{"lease and watchdog", s.URL(), run("--lease", "1s", "--watchdog", "3s", "x", "--", "true"), "contradict"},
		{"no lease", s.URL(), run("--lease", "0s", "x", "--", "true"), "--lease"},
		{"short watchdog", s.URL(), run("--watchdog", "10ms", "x", "--", "true"), "--watchdog"},
		{"negative wait", s.URL(), run("--wait", "-1s", "x", "--", "true"), "--wait"},
		{"no exit code", s.URL(), run("--conflict-exit-code", "256", "x", "--", "true"), "from 0 to 255"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			program.Fails(t, c.url, 125, c.says, c.args...)
		})
	}
}

func TestRunReportsARefusedPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("right"))
	program.Fails(t, "redis://:sesame@"+s.Addr(), 125, "refuses: WRONGPASS", "run", "x", "--", "true")
	require.Equal(t, 0, program.Finish(t, s.URL(), "run", "x", "--", "true").Code)
}

func TestRedisFlagGoesBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	require.Equal(t, 0, program.Finish(t, program.NoServer(t), "--redis", s.URL(), "run", redistest.Key(t), "--", "true").Code)
}

func TestSignalsReachTheCommandAndItsExitCodeComesBack(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for sig, name := range map[syscall.Signal]string{
		syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := strings.ReplaceAll(`trap 'echo got NAME; exit 9' NAME; echo up; while :; do sleep 0.05; done`, "NAME", name)
			lock := redistest.Key(t)
			p := program.Start(t, s.URL(), "run", lock, "--", "sh", "-c", script)
			require.Equal(t, "up", p.Line())
			require.NoError(t, p.Cmd.Process.Signal(sig))
			require.Equal(t, "got "+name+"\n", p.Rest())
			require.Equal(t, 9, p.Code())
			require.EqualValues(t, 0, s.Do(t, "EXISTS", lock))
		})
	}
}

func TestSignalEndsTheWaitForTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := heldHere(t, s)
	p := program.Start(t, s.URL(), "run", name, "--", "echo", "never")
	awaitWaiter(t, s, name)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Empty(t, p.Rest())
	require.Equal(t, 128+int(syscall.SIGTERM), p.Code())
	require.Empty(t, p.Stderr.String())
}
