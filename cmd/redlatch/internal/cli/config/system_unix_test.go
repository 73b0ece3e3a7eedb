//go:build unix

package config

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The owner could make the file writable again.
func TestFileOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	mine, err := os.Stat(t.TempDir())
	require.NoError(t, err)
	require.False(t, ownedByOther(mine))
	for uid, refused := range map[int]bool{0: false, os.Geteuid(): false, os.Geteuid() + 1: true} {
		require.Equal(t, refused, ownedByOther(owned{mine, uid}), uid)
	}
	if os.Geteuid() == 0 { // only root can give files away
		path := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(path, []byte(example), 0o600))
		require.NoError(t, os.Chown(path, 4711, 4711))
		_, err = read(path, ownedByOther)
		require.ErrorContains(t, err, "another user owns this file")
	}
}

type owned struct {
	os.FileInfo

	uid int
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: uint32(o.uid)} }

func TestPasswordCommandMayStartDaemon(t *testing.T) {
	t.Parallel()
	got, err := Command{"sh", "-c", "echo sesame; sleep 3 &"}.Password(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "sesame", got)
}

func TestPasswordCommandEndsWithChildren(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pid")
	require.NoError(t, syscall.Mkfifo(pids, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pids) // until the shell has written it
		read <- string(text)
		cancel()
	}()
	_, err := Command{"sh", "-c", "sleep 600 & echo $! >$0; wait", pids}.Password(ctx, "")
	require.ErrorContains(t, err, "password-command sh: not finished after ")
	text := <-read
	child, err := strconv.Atoi(strings.TrimSpace(text))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(child), "stat"))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, 5*time.Millisecond, "the child runs on")
}

func TestUseKeepsOwnerOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(example), 0o600))
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 { // only root can give files away
		uid, gid = 4711, 4712
		require.NoError(t, os.Chown(path, uid, gid))
	}
	f, err := parse(path, []byte(example))
	require.NoError(t, err)
	require.NoError(t, f.Use("prod"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.Equal(t, []uint32{uint32(uid), uint32(gid)}, []uint32{stat.Uid, stat.Gid})
	require.Equal(t, os.FileMode(0o600), info.Mode())
}
