//go:build unix

package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
		_, err = read(path)
		require.ErrorContains(t, err, "another user owns this file")
	}
}

type owned struct {
	os.FileInfo

	uid int
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: uint32(o.uid)} }
