package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const restored = "\x1b[?1049l" // the normal screen

// start runs redlatch top, or args, and waits until it shows a lock.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, keys *os.File) {
	t.Helper()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	cmd = top(t, args...)
	return cmd, startOn(t, cmd, s.URL(), "orders:42")
}

// top returns redlatch top, or args with the program's path appended.
func top(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	if len(args) == 0 {
		return exec.CommandContext(t.Context(), exe, "top", "--every=100ms", "orders:*")
	}
	return exec.CommandContext(t.Context(), args[0], append(args[1:], exe)...)
}

// startOn runs a command on a terminal that it controls, and waits for text on it.
func startOn(t *testing.T, cmd *exec.Cmd, url, text string) (keys *os.File) {
	t.Helper()
	terminal, keys := program.OpenTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	cmd.Env = slices.Concat(os.Environ(), []string{program.Env + "=1", "TERM=xterm-256color", "REDIS_URL=" + url}, cmd.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())
	await(t, keys, text)
	return keys
}

// press writes keys, and then awaits texts.
func press(t *testing.T, keys *os.File, text string, texts ...string) {
	t.Helper()
	_, err := keys.WriteString(text)
	require.NoError(t, err)
	await(t, keys, texts...)
}

// await reads until the terminal has shown some texts, one after the other.
func await(t *testing.T, keys *os.File, texts ...string) {
	t.Helper()
	shown, some := "", make([]byte, 4096)
	until := time.Now().Add(6 * program.Soon)
	for _, text := range texts {
		for !strings.Contains(shown, text) {
			require.True(t, time.Now().Before(until), "%q", shown)
			n, err := keys.Read(some)
			if shown += string(some[:n]); err != nil {
				require.Contains(t, shown, text)
			}
		}
		_, shown, _ = strings.Cut(shown, text)
	}
}

func TestKeysEndTopAndRestoreTerminal(t *testing.T) {
	t.Parallel()
	for keys, code := range map[string]int{"q": 0, "q" + strings.Repeat("x", 3000): 0, "\x03": 130} {
		cmd, terminal := start(t)
		press(t, terminal, keys, restored)
		require.Equal(t, code != 0, cmd.Wait() != nil)
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%.2q", keys)
	}
}

func TestSignalEndsTopAndRestoresTerminal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd, keys := start(t)
		require.NoError(t, cmd.Process.Signal(sig))
		await(t, keys, restored)
		require.Error(t, cmd.Wait())
		require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode())
	}
}

func TestTopStopsAndContinuesLikeShellJob(t *testing.T) {
	t.Parallel()
	cmd, keys := start(t, "sh", "-mc", `"$0" top --every=100ms; stty -a; fg`)
	press(t, keys, "\x1a", restored, " icanon ", "orders:42")
	press(t, keys, "q", restored)
	require.NoError(t, cmd.Wait())
}

func TestTopWithoutShellDoesNotStop(t *testing.T) {
	t.Parallel()
	cmd, keys := start(t)
	press(t, keys, "\x1a", restored, "orders:42")
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT)) // after SIGSTOP
	await(t, keys, restored, "orders:42")
	press(t, keys, "\r", "HOLDERS")
	press(t, keys, "q", restored)
	require.NoError(t, cmd.Wait())
}

func TestTopNeedsServerAndCapableTerminal(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		term string
		code int
	}{"connection refused": {"xterm-256color", 1}, "top needs a terminal, and TERM other than dumb": {"dumb", 2}} {
		cmd := top(t)
		cmd.Env = []string{"TERM=" + c.term}
		startOn(t, cmd, program.NoServer(t), says)
		require.Error(t, cmd.Wait())
		require.Equal(t, c.code, cmd.ProcessState.ExitCode())
	}
}
