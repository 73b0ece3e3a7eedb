//go:build unix

package hold

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessagesReachTheSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	paths := []string{filepath.Join(dir, "s")}
	if runtime.GOOS == "linux" {
		paths = append(paths, "@redlatch-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, path := range paths {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		require.NoError(t, err)
		t.Setenv("NOTIFY_SOCKET", path)
		notify(notifyReady, notifyStatus("holds\n the lock"))
		require.NoError(t, l.SetReadDeadline(time.Now().Add(10*time.Second)))
		text := make([]byte, 100)
		n, err := l.Read(text)
		require.NoError(t, err)
		require.Equal(t, "READY=1\nSTATUS=holds the lock", string(text[:n]))
		require.NoError(t, l.Close())
	}
	notify(notifyStopping) // the socket is gone
	t.Setenv("NOTIFY_SOCKET", "")
	notify(notifyStopping)
}
