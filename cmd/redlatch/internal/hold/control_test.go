//go:build unix

package hold

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// folder returns a directory for sockets with a short path, because the path of t.TempDir may be
// too long.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hold") //nolint:usetesting // as said above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// runtimeFolder sets the user's runtime directory to a new directory.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	t.Setenv(runtimeEnv, dir)
	return dir
}

func TestReleaseRequestIsAnswered(t *testing.T) {
	runtimeFolder(t)
	s, err := listen("me")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = ask(ctx, s.path(), "you")
	require.ErrorIs(t, err, errOther)
	want := answer{Code: 125, Text: "it was lost\nlong ago"}
	go func() { (<-s.requests).answer(want) }()
	got, err := ask(t.Context(), s.path(), "me")
	require.NoError(t, err)
	require.Equal(t, want, got)
	s.close()
	_, err = ask(t.Context(), s.path(), "me")
	require.ErrorIs(t, err, errEnded)
}

func TestMissingProcessIsNotWaitedFor(t *testing.T) {
	dir := runtimeFolder(t)
	path := filepath.Join(dir, "left.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false) // as after SIGKILL
	require.NoError(t, l.Close())
	_, err = ask(t.Context(), path, "me")
	require.ErrorIs(t, err, errKilled)
	require.NoFileExists(t, path)

	s, err := listen("me")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.requests; cancel(); s.close() }()
	_, err = ask(ctx, s.path(), "me")
	require.ErrorIs(t, err, context.Canceled)
}

func TestDirectoryIsPrivateToUser(t *testing.T) {
	dir := runtimeFolder(t)
	path, err := socketPath("me")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "redlatch"), filepath.Dir(path))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
	_, err = socketPath("me")
	require.ErrorContains(t, err, "is accessible to other users")
	t.Setenv("XDG_RUNTIME_DIR", "/no/such/folder")
	_, err = socketPath("me")
	require.ErrorContains(t, err, "no directory for the socket")
}

func TestNonSocketFileIsKept(t *testing.T) {
	path := filepath.Join(runtimeFolder(t), "text")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	_, err := ask(t.Context(), path, "me")
	require.Error(t, err)
	require.NotErrorIs(t, err, errKilled)
	require.FileExists(t, path)
}

// Only the first request is answered. For other requests, the hold has ended, even if they arrive
// before this answer.
func TestLateReleaseReturnsErrEnded(t *testing.T) {
	dir := runtimeFolder(t)
	s, err := listen("me")
	require.NoError(t, err)
	first := make(chan error, 1)
	go func() { _, err := ask(t.Context(), s.path(), "me"); first <- err }()
	request := <-s.requests
	var late []net.Conn
	for range 3 {
		conn, err := net.Dial("unix", s.path()) //nolint:noctx // it waits for nothing
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		require.NoError(t, json.NewEncoder(conn).Encode("me"))
		late = append(late, conn)
	}
	request.answer(answer{})
	s.close()
	require.NoError(t, <-first)
	for _, conn := range late {
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err, "it was answered")
	}
	_, err = ask(t.Context(), s.path(), "me")
	require.ErrorIs(t, err, errEnded)

	path := filepath.Join(dir, "ends.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	go func() {
		conn, err := l.Accept()
		_ = l.Close() // and removes the socket
		if err == nil {
			_ = conn.Close()
		}
	}()
	_, err = ask(t.Context(), path, "me")
	require.ErrorIs(t, err, errEnded)
}
