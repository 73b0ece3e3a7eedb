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

// start runs redlatch on a terminal that it controls, and waits for text on it.
func start(t *testing.T, url, text string, env ...string) (cmd *exec.Cmd, keys *os.File) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.CommandContext(t.Context(), exe, "top", "--every=100ms", "orders:*")
	cmd.Env = env
	return cmd, startOn(t, cmd, url, text)
}

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

func TestTopQuitsAndRestoresTerminal(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	s.Do(t, "HSET", "invoices:7", program.SomeOwner, 1)
	cmd, keys := start(t, s.URL(), "orders:42")
	_, err := keys.WriteString("\r")
	require.NoError(t, err)
	await(t, keys, "HOLDERS")
	_, err = keys.WriteString("q")
	require.NoError(t, err)
	await(t, keys, restored)
	require.NoError(t, cmd.Wait())
}

func TestSignalEndsTopAndRestoresTerminal(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd, keys := start(t, s.URL(), "orders:42")
		require.NoError(t, cmd.Process.Signal(sig))
		await(t, keys, restored)
		require.Error(t, cmd.Wait())
		require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode())
	}
}

func TestInterruptKeyEndsTopLikeSIGINT(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	cmd, keys := start(t, s.URL(), "orders:42")
	_, err := keys.WriteString("\x03")
	require.NoError(t, err)
	await(t, keys, restored)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
}

func TestTopRejectsDumbTerminal(t *testing.T) {
	t.Parallel()
	cmd, _ := start(t, redistest.Mini(t).URL(), "top needs a terminal, and TERM other than dumb", "TERM=dumb")
	require.Error(t, cmd.Wait())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
}

func TestTopStopsAndContinuesLikeShellJob(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-mc", `"$0" top --every=100ms; stty -a; fg`, exe)
	keys := startOn(t, cmd, s.URL(), "orders:42")
	_, err = keys.WriteString("\x1a")
	require.NoError(t, err)
	await(t, keys, restored, " icanon ", "orders:42")
	_, err = keys.WriteString("q")
	require.NoError(t, err)
	await(t, keys, restored)
	require.NoError(t, cmd.Wait())
}

func TestTopWithoutShellDoesNotStop(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	cmd, keys := start(t, s.URL(), "orders:42")
	_, err := keys.WriteString("\x1a")
	require.NoError(t, err)
	await(t, keys, restored, "orders:42")
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT)) // after SIGSTOP
	await(t, keys, restored, "orders:42")
	_, err = keys.WriteString("q")
	require.NoError(t, err)
	await(t, keys, restored)
	require.NoError(t, cmd.Wait())
}

func TestTopNeedsServer(t *testing.T) {
	t.Parallel()
	cmd, _ := start(t, program.NoServer(t), "connection refused")
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
}

func TestTopQuitsWithKeysPending(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 1)
	cmd, keys := start(t, s.URL(), "orders:42")
	_, err := keys.WriteString("q" + strings.Repeat("x", 3000))
	require.NoError(t, err)
	await(t, keys, restored)
	require.NoError(t, cmd.Wait())
}
