//go:build unix

package hold

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func awaitFree(t *testing.T, s redistest.Target, name string) {
	t.Helper()
	require.Eventually(t, func() bool { return !program.Exists(t, s, name) }, program.Soon, program.PollEvery)
}

func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestHoldPrintsOwnerAndReleasesOnSignal(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, kind := range []string{"--fair=false", "--fair", "--write"} {
			name := redistest.Key(t)
			p := program.Start(t, s.URL(), "hold", kind, name)
			_, err := codec.ParseOwner(p.Line())
			require.NoError(t, err)
			require.True(t, program.Exists(t, s, name))
			require.NoError(t, p.Cmd.Process.Signal(sig))
			require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
			require.False(t, program.Exists(t, s, name))
		}
	}
}

func TestHoldPrintsTokenAndPermit(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for flag, name := range map[string]string{"--fenced": redistest.Key(t), "--permits": redistest.Key(t) + ":2"} {
		p := program.Start(t, s.URL(), "hold", flag, name)
		require.NotEmpty(t, p.Line())
		if flag == "--fenced" {
			require.Equal(t, "1", p.Line())
		}
		require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
		require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	}
}

func TestHoldEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	other := sleeper(t)
	pid := strconv.Itoa(other.Process.Pid)
	p := program.Start(t, s.URL(), "hold", "--for-pid", pid, name)
	p.Line()
	waits := program.Start(t, s.URL(), "hold", "--fair=false", "--for-pid", pid, name)
	require.NoError(t, other.Process.Kill())
	require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	got := waits.Outcome(program.Soon)
	if got.Code != 0 { // a slow one may have acquired and released the lock
		require.Equal(t, 125, got.Code)
		require.Contains(t, got.Stderr, `stopped waiting for lock "`+name+`": process `+pid+" has exited")
	}
	require.False(t, program.Exists(t, s, name))
	require.NoError(t, ignoreKilled(other.Wait()))
	got = program.Finish(t, s.URL(), "hold", "--for-pid", pid, name)
	require.Equal(t, program.Outcome{Code: 125, Stderr: "redlatch: --for-pid: " + pid + ": no such process\n"}, got)
}

func ignoreKilled(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return nil
	}
	return err
}

func TestFailedHoldExitsLikeRun(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Hour)
	for line, code := range map[string]int{"--try": 124, "--wait=1s": 124, "--try --conflict-exit-code=9": 9} {
		args := append([]string{"hold"}, strings.Fields(line)...)
		require.Empty(t, program.Fails(t, s.URL(), code, "is held by "+program.SomeOwner+"; its lease", append(args, name)...).Stdout)
	}
	p := program.Start(t, s.URL(), "hold", "--watchdog=10s", name)
	require.Eventually(t, func() bool { return slices.Contains(s.Channels(t), codec.LockChannel(name)) }, program.Soon, program.PollEvery)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 143, p.Outcome(program.Soon).Code)
}

func TestInvalidCommandLinesAreRejected(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"hold":                                  "NAME is missing. Usage: redlatch hold [-s] {NAME | --permits NAME:N}; see `redlatch hold --help`",
		"hold a b":                              "too many arguments: b. ",
		"hold --permits a:1 b":                  "--permits NAME:N replaces NAME: remove b. ",
		"hold --for-pid 0 a":                    "--for-pid must be a process ID, such as $$",
		"hold --on-lost-signal TERM a":          "--on-lost-signal needs --for-pid",
		"hold --on-lost-signal SEGV -s a":       "--on-lost-signal must be TERM, INT, HUP, USR1, USR2 or KILL",
		"hold --wait 5 a":                       "must have a unit",
		"hold --lease 5s --at-least 3s a":       "--lease and --at-least are mutually exclusive",
		"hold -s --try --wait 3s a":             "--try and --wait are mutually exclusive",
		"hold --max-hold 1s --at-least 2s -s a": "--at-least is longer than --max-hold",

		"x":                                               "NAME or --permits must precede --, and COMMAND must follow it. Usage: redlatch run",
		"\xff -- true":                                    "is not valid UTF-8",
		"x y -- true":                                     "y precedes --: COMMAND and its arguments must follow --. Usage: redlatch run",
		"x --":                                            "COMMAND is missing after --. Usage: redlatch run",
		"-- true":                                         "NAME is missing before --",
		"x sh -c ./a.sh":                                  "unknown shorthand flag: 'c' in -c. `redlatch run --help` lists the flags. COMMAND and its flags must follow --",
		"--forever x":                                     "unknown flag",
		"--wait 5 x --":                                   "must have a unit, such as 10s, 500ms or 1h30m",
		"--wait -1s x -- true":                            "--wait must be 0 or at least 1ms",
		"--try --wait 1s x -- true":                       "--try and --wait are mutually exclusive",
		"--lease 1s --watchdog 3s x -- true":              "--lease and --watchdog are mutually exclusive",
		"--lease 876001h x -- true":                       "--lease and --watchdog must be at most 876000h",
		"--lease 0s x -- true":                            "--lease must be at least 1ms",
		"--watchdog 10ms x -- true":                       "--watchdog must be at least",
		"--max-hold 0s x -- true":                         "--max-hold must be at least 1ms",
		"--lease 1s --max-hold 1s x -- true":              "--lease and --max-hold are mutually exclusive",
		"--lease 1s --at-least 1s x -- true":              "--lease and --at-least are mutually exclusive",
		"--at-least 2s --max-hold 1s x -- true":           "--at-least is longer than --max-hold",
		"--at-least -1s x -- true":                        "--at-least must not be negative",
		"--at-least 876001h x -- true":                    "--at-least must be at most 876000h",
		"--on-lost shout x -- true":                       "--on-lost must be term, kill or ignore",
		"--on-lost ignore --max-hold 1s x -- true":        "--max-hold and --on-lost ignore are mutually exclusive",
		"--conflict-exit-code -1 --max-hold 1s x -- true": "from 0 to 255",
		"--conflict-exit-code 256 x -- true":              "from 0 to 255",
		"--read --write x -- true":                        "mutually exclusive",
		"--read --fair x -- true":                         "mutually exclusive",
		"--write --fenced x -- true":                      "mutually exclusive",
		"--permits a -- true":                             `--permits must be NAME:N, such as crawl:5, with N from 1 to 2147483647, not "a"`,
		"--permits a: -- true":                            "--permits must be NAME:N",
		"--permits :3 -- true":                            "--permits must be NAME:N",
		"--permits a:0 -- true":                           "--permits must be NAME:N",
		"--permits a:-1 -- true":                          "--permits must be NAME:N",
		"--permits a:2147483648 -- true":                  "--permits must be NAME:N",
		"--permits= -- true":                              "--permits must be NAME:N",
		"--permits a x --":                                "--permits NAME:N replaces NAME: remove x",
		"--permits a:1 x -- true":                         "--permits NAME:N replaces NAME: remove x",
		"--permits a:1 --":                                "COMMAND is missing after --",
		"--permits a:1 sh ./a.sh":                         "NAME or --permits must precede --, and COMMAND must follow it",
		"--permits a:3 --fair -- true":                    "--permits and --fair, --fenced, --read or --write are mutually exclusive",
		"--permits a:3 --read -- true":                    "--permits and --fair, --fenced, --read or --write are mutually exclusive",
		"--permits a:3 --at-least 1m -- true":             "--permits and --at-least are mutually exclusive",
	} {
		args := strings.Fields(line)
		if args[0] != "hold" {
			args = append([]string{"run"}, args...)
		}
		root := cli.NewRoot(New, NewRun)
		root.SetArgs(args)
		root.SetOut(io.Discard)
		require.ErrorContains(t, root.Execute(), says, line)
	}
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
	program.Fails(t, s.URL(), 125, "the key is not a read/write lock; it may be a plain lock of this name", "run", "--write", name, "--", "true")
	program.Fails(t, s.URL(), 125, "the key is not a semaphore; it may be a lock of this name", "run", "--permits", name+":3", "--", "true")
}

func TestOnLostExecIsBoundedAndRunsOnlyOnLoss(t *testing.T) {
	t.Parallel()
	pipe, death := awaitDeaths(t)
	require.EqualError(t, execute("exec 3>"+pipe+"; sleep 600 | sleep 600", nil, 500*time.Millisecond), "it was killed after 500ms")
	require.Eventually(t, func() bool { return len(death) > 0 }, program.Soon, program.PollEvery, "its children live")

	s := redistest.Shared(t)
	name := redistest.Key(t)
	got := program.Finish(t, s.URL(), "run", "--max-hold=1s", "--on-lost-exec", "echo hook", name, "--", "sleep", "600")
	require.Equal(t, 125, got.Code)
	require.Contains(t, got.Stderr, "was held for 1s, the maximum set by --max-hold")
	require.False(t, program.Exists(t, s, name))
	require.NotContains(t, got.Stderr, "hook")
	require.Equal(t, program.Outcome{}, program.Finish(t, s.URL(), "run", "--on-lost-exec", "echo hook", name, "--", "true"))
}

// notified listens like a service manager, on an abstract socket or in a directory. It returns the
// variable for the environment and a function that returns the next message.
func notified(t *testing.T, abstract bool) (env string, next func() string) {
	t.Helper()
	path := filepath.Join(folder(t), "s")
	if abstract && runtime.GOOS == "linux" {
		path = "@redlatch-test-" + strconv.Itoa(os.Getpid())
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "NOTIFY_SOCKET=" + path, func() string {
		require.NoError(t, l.SetReadDeadline(time.Now().Add(2*program.Soon)))
		text := make([]byte, 1000)
		n, err := l.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
}

func TestServiceManagerIsNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	begin := func(abstract bool, args ...string) (*program.Process, string, func() string) {
		env, next := notified(t, abstract)
		p := program.StartWith(t, []string{"REDIS_URL=" + s.URL(), env}, args...)
		name := args[1]
		require.Equal(t, "STATUS=waiting for lock "+name, next())
		require.Regexp(t, `^READY=1\nSTATUS=holding lock \Q`+name+`\E since 2\S+Z$`, next())
		return p, name, next
	}
	p, _, next := begin(true, "hold", redistest.Key(t))
	p.Line()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "STOPPING=1", next())
	p.Rest()

	p, name, next := begin(false, "run", redistest.Key(t), "--", "sh", "-c", "read x")
	require.NoError(t, p.Stdin.Close())
	require.Equal(t, "STOPPING=1\nSTATUS=releasing lock "+name, next())
	p.Rest()
}
