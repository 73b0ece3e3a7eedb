//go:build unix

package control_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/tool/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder makes the folder for sockets one of this test: t.TempDir may be too long a path.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "control") //nolint:usetesting // as said above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestAReleaseIsAskedForAndAnswered(t *testing.T) {
	folder(t)
	s, err := control.Listen("me")
	require.NoError(t, err)
	_, err = control.Ask(t.Context(), s.Path(), "you")
	require.ErrorIs(t, err, control.ErrOther)
	want := control.Answer{Code: 125, Text: "it was lost\nlong ago"}
	go func() { (<-s.Requests()).Answer(want) }()
	got, err := control.Ask(t.Context(), s.Path(), "me")
	require.NoError(t, err)
	require.Equal(t, want, got)
	s.Close()
	_, err = control.Ask(t.Context(), s.Path(), "me")
	require.ErrorIs(t, err, control.ErrEnded)
}

func TestAProcessThatIsGoneIsNotWaitedFor(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "left.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false) // as after SIGKILL
	require.NoError(t, l.Close())
	_, err = control.Ask(t.Context(), path, "me")
	require.ErrorIs(t, err, control.ErrKilled)
	require.NoFileExists(t, path)

	s, err := control.Listen("me")
	require.NoError(t, err)
	go func() { <-s.Requests(); s.Close() }() // it ends without an answer
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = control.Ask(ctx, s.Path(), "me")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheFolderIsTheUsersAlone(t *testing.T) {
	dir := folder(t)
	path, err := control.Path("me")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "redlatch"), filepath.Dir(path))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
	_, err = control.Path("me")
	require.ErrorContains(t, err, "can be used by other users")
	t.Setenv("XDG_RUNTIME_DIR", "/no/such/folder")
	_, err = control.Path("me")
	require.ErrorContains(t, err, "no folder for a socket")
}

// A variable of the environment may name anything.
func TestAFileThatIsNoSocketIsLeftAlone(t *testing.T) {
	path := filepath.Join(folder(t), "text")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	_, err := control.Ask(t.Context(), path, "me")
	require.Error(t, err)
	require.NotErrorIs(t, err, control.ErrKilled)
	require.FileExists(t, path)
}

// Of several that ask at the same time the first is answered, and the hold has ended for the others.
func TestThoseThatAskTooLateAreToldThatTheHoldHasEnded(t *testing.T) {
	folder(t)
	s, err := control.Listen("me")
	require.NoError(t, err)
	const others = 3
	first, late := make(chan error, 1), make(chan error, others)
	go func() { _, err := control.Ask(t.Context(), s.Path(), "me"); first <- err }()
	request := <-s.Requests()
	for range others {
		go func() { _, err := control.Ask(t.Context(), s.Path(), "me"); late <- err }()
	}
	time.Sleep(200 * time.Millisecond) // they are connected
	request.Answer(control.Answer{})
	s.Close()
	require.NoError(t, <-first)
	for range others {
		require.ErrorIs(t, <-late, control.ErrEnded)
	}
}
