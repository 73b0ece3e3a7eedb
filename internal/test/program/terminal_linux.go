package program

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// OpenTerminal opens a pseudoterminal. It returns the terminal, and the file for its keyboard and display.
func OpenTerminal(t *testing.T) (terminal, keys *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, keys.Close()) })
	require.NoError(t, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal, keys
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// OnTerminal runs redlatch on a terminal with 80 columns, and returns its output.
func OnTerminal(t *testing.T, url, typed string, args ...string) string {
	t.Helper()
	terminal, keys := OpenTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	_, err := keys.WriteString(typed)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), Env+"="+once, "GORACE=atexit_sleep_ms=0", "TERM=xterm", "REDIS_URL="+url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())
	shown, _ := io.ReadAll(keys) // fails when all processes have closed the terminal
	_ = cmd.Wait()
	// The terminal has already echoed the typed input.
	return escapes.ReplaceAllString(strings.NewReplacer("\r", "", "[y/N] ", "[y/N]\n").Replace(string(shown)), "")
}
