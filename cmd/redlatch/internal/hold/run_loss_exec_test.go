//go:build unix

package hold

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestOnLostExecRunsWithTheReasonAndDelaysNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, kind := range []string{"term", "kill", "ignore"} {
		name := redistest.Key(t)
		dir := t.TempDir()
		p := program.Start(t, s.URL(), "run", "--watchdog=3s", "--on-lost", kind, "--on-lost-exec",
			`echo "$REDLATCH_LOCK|$REDLATCH_OWNER|$REDLATCH_LOSS" >`+dir+`/told; sleep 2; echo hook; exit 3`,
			name, "--", "sh", "-c", `echo "$REDLATCH_OWNER"; trap 'exit 0' TERM; while [ ! -e `+dir+`/told ]; do sleep 0.05; done; echo ended >`+dir+`/ended & wait`)
		owner := p.Line()
		s.Do(t, "DEL", name)
		got := p.Outcome(2 * program.Soon)
		told, err := os.ReadFile(filepath.Join(dir, "told"))
		require.NoError(t, err)
		require.Regexp(t, `^\Q`+name+`|`+owner+`\E\|.+\n$`, string(told))
		require.Empty(t, got.Stdout)
		require.Contains(t, got.Stderr, "hook\nredlatch: warning: --on-lost-exec: exit status 3\n")
		require.Contains(t, got.Stderr, "was lost while the command ran")
		if kind == "ignore" {
			require.Zero(t, got.Code)
			require.FileExists(t, filepath.Join(dir, "ended"))
		} else {
			require.Equal(t, 125, got.Code)
		}
	}
}

func TestOnLostExecIsBoundedAndOnlyForLosses(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	began := time.Now()
	p := program.Start(t, s.URL(), "run", "--watchdog=10s", "--on-lost-exec", "sleep 600 | sleep 600", name, "--", "sh", "-c", program.EndsOnSIGTERM)
	require.Equal(t, "up", p.Line())
	s.Do(t, "DEL", name)
	require.Equal(t, "term\n", p.RestWithin(4*program.Soon))
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "--on-lost-exec: it was killed after 10s")
	require.Less(t, time.Since(began), time.Minute)

	got := program.Finish(t, s.URL(), "run", "--max-hold=1s", "--on-lost-exec", "echo hook", name, "--", "sleep", "600")
	require.Equal(t, 125, got.Code)
	require.NotContains(t, got.Stderr, "hook")
	got = program.Finish(t, s.URL(), "run", "--on-lost-exec", "echo hook", name, "--", "true")
	require.Equal(t, program.Outcome{}, got)
}

// notified listens as a service manager does. It returns the variable for a program, and what
// returns the next message.
func notified(t *testing.T) (env string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
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

func TestRunTellsTheServiceManagerHowFarItIs(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	env, next := notified(t)
	p := program.StartWith(t, []string{"REDIS_URL=" + s.URL(), env}, "run", "--watchdog=3s", name, "--", "sh", "-c", "read x")
	require.Equal(t, "STATUS=waits for lock "+name, next())
	require.Regexp(t, `^READY=1\nSTATUS=holds lock \Q`+name+`\E since 2\S+Z$`, next())
	require.NoError(t, p.Stdin.Close())
	require.Equal(t, "STOPPING=1\nSTATUS=frees lock "+name, next())
	p.Rest()

	env, next = notified(t)
	p = program.StartWith(t, []string{"REDIS_URL=" + s.URL(), env}, "run", "--watchdog=3s", name, "--", "sh", "-c", program.EndsOnSIGTERM)
	require.Equal(t, "up", p.Line())
	next()
	next()
	s.Do(t, "DEL", name)
	require.Regexp(t, `^STOPPING=1\nSTATUS=lost lock \Q`+name+`\E: .`, next())
	p.Rest()
}
