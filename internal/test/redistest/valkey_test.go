package redistest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMissingValkeySkipsTheTestAndFailsItWhereItMustBeThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(valkeyEnv, "")
	t.Chdir(t.TempDir())
	fatal := "fatal: "
	if testing.Short() {
		fatal = "skip: "
	}
	for _, c := range []struct{ ci, name, want string }{
		{"", "", "skip: NOT RUN ON VALKEY"},
		{"true", "", fatal},
		{"", "no-such-valkey", fatal},
		{"true", "/no/such/valkey", fatal},
	} {
		t.Setenv("CI", c.ci)
		t.Setenv(valkeyEnv, c.name)
		verdict := verdictOf(func(r *recorder) { StartValkey(r) })
		require.True(t, strings.HasPrefix(verdict, c.want), verdict)
		require.Contains(t, verdict, "make setup")
	}
}

// tidy is a recorder that cleans up with its test.
type tidy struct {
	*recorder
	t *testing.T
}

func (c tidy) Cleanup(f func()) { c.t.Cleanup(f) }
func (tidy) Failed() bool       { return false }

func TestAServerThatIsNoValkeyFailsTheTest(t *testing.T) {
	path, err := findValkey("redis-server")
	if err != nil {
		t.Skip("the tests' server is not called redis-server here")
	}
	t.Setenv(valkeyEnv, path)
	require.Contains(t, verdictOf(func(r *recorder) { StartValkey(tidy{r, t}) }), "is no Valkey but redis")
}

// The program is a link, and must be started by the link's name.
func TestTheFetchedValkeyIsFoundFromAnyFolderBelow(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, valkeyKept)
	require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o700))
	require.NoError(t, os.WriteFile(kept+"-really", []byte("#!"), 0o700))
	require.NoError(t, os.Symlink(kept+"-really", kept))
	below := filepath.Join(folder, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	t.Chdir(below)
	path, err := findValkey("")
	require.NoError(t, err)
	require.Equal(t, "valkey-server", filepath.Base(path))
	want, err := os.Stat(kept)
	require.NoError(t, err)
	got, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(want, got))
}
