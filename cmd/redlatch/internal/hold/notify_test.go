//go:build unix

package hold

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestHoldTellsTheServiceManagerHowFarItIs(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	next := func() string {
		require.NoError(t, l.SetReadDeadline(time.Now().Add(2*program.Soon)))
		text := make([]byte, 1000)
		n, err := l.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
	env := []string{"REDIS_URL=" + s.URL(), "NOTIFY_SOCKET=" + path}
	for _, lost := range []bool{false, true} {
		name := redistest.Key(t)
		p := program.StartWith(t, env, "hold", "--watchdog=3s", name)
		require.Equal(t, "STATUS=waits for lock "+name, next())
		require.Regexp(t, `^READY=1\nSTATUS=holds lock \Q`+name+`\E since 2\S+Z$`, next())
		p.Line()
		if lost {
			s.Do(t, "DEL", name)
			require.Regexp(t, `^STOPPING=1\nSTATUS=lock "\Q`+name+`\E" was lost: .`, next())
		} else {
			require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
			require.Equal(t, "STOPPING=1", next())
		}
		p.Rest()
	}
}
