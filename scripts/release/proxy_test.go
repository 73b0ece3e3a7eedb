package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes what the tags of a version have into a folder that GOPROXY may name: for each
// module its list of versions, and of the version a .info, a .mod and a .zip file.
func proxy(t *testing.T, r *repo, version string) string {
	t.Helper()
	folder := t.TempDir()
	for _, m := range r.published() {
		escaped, err := xmodule.EscapePath(m.path())
		require.NoError(t, err)
		at := filepath.Join(folder, escaped, "@v")
		require.NoError(t, os.MkdirAll(at, 0o750))
		file := func(suffix string, text []byte) {
			require.NoError(t, os.WriteFile(filepath.Join(at, version+suffix), text, 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o600))

		tag := m.tag(version)
		committed, err := time.Parse(time.RFC3339, strings.TrimSpace(do(t, r, "log", "-1", "--format=%cI", tag)))
		require.NoError(t, err)
		info, err := json.Marshal(map[string]any{"Version": version, "Time": committed.UTC()})
		require.NoError(t, err)
		file(".info", info)
		file(".mod", []byte(do(t, r, "show", tag+":"+path.Join(m.folder, "go.mod"))))

		out, err := os.Create(filepath.Join(at, version+".zip"))
		require.NoError(t, err)
		subfolder := strings.TrimPrefix(m.folder, ".")
		require.NoError(t, zip.CreateFromVCS(out, xmodule.Version{Path: m.path(), Version: version}, r.root, tag, subfolder))
		require.NoError(t, out.Close())
	}
	return folder
}

// cloned copies the checkout that this module is in, with what is not committed yet.
func cloned(t *testing.T) *repo {
	t.Helper()
	here, err := open(".")
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "clone")
	do(t, here, "clone", "--quiet", here.root, folder)
	// The clone has a branch also where the checkout, as in CI, has none.
	command(t, folder, nil, "git", "checkout", "--quiet", "-B", "trial")
	command(t, folder, nil, "git", "--work-tree="+here.root, "add", "--all")
	command(t, folder, nil, "git", "commit", "--quiet", "--allow-empty", "--message", "what is not committed")
	command(t, folder, nil, "git", "reset", "--quiet", "--hard")
	clone, err := open(folder)
	require.NoError(t, err)
	return clone
}
