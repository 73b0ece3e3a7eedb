//go:build unix

package hold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

func TestFindCommandDistinguishesMissingFromNotRunnable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700))
	path, err := findCommand("tool")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "tool"), path)
	for _, c := range []struct {
		name string
		code int
		is   error
	}{
		{"data", cli.CodeNotRunnable, fs.ErrPermission},
		{dir + "/missing", cli.CodeNotFound, fs.ErrNotExist},
		{"no-such-command-anywhere", cli.CodeNotFound, nil},
		{"", cli.CodeNotFound, nil},
	} {
		var failed *cli.ExitError
		_, err := findCommand(c.name)
		require.ErrorAs(t, err, &failed, c.name)
		require.Equal(t, c.code, failed.Code, c.name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
}

func TestStartCodeIsThatOfTheFailure(t *testing.T) {
	t.Parallel()
	at := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: "/x", Err: err} }
	require.Equal(t, cli.CodeNotFound, startCode(at(syscall.ENOENT)))
	require.Equal(t, cli.CodeNotRunnable, startCode(at(syscall.ENOEXEC)))
	require.Equal(t, cli.CodeNotRunnable, startCode(at(syscall.EACCES)))
	require.Equal(t, cli.CodeRunFailed, startCode(at(syscall.EAGAIN)))
	require.Equal(t, "exec format error", cause(at(syscall.ENOEXEC)).Error())
	plain := errors.New("plain")
	require.Equal(t, plain, cause(plain))
}
