package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a checkout that can be released.
var small = map[string]string{
	"go.mod":                          "module example.com/core\n\ngo 1.25.0\n",
	"core.go":                         "package core\n\n// Lock locks.\nfunc Lock() {}\n\n// Unlock unlocks.\nfunc Unlock() {}\n",
	"internal/inside/inside.go":       "package inside\n\n// Old is for the core alone.\nfunc Old() {}\n",
	"adapter/goredis/go.mod":          "module example.com/core/adapter/goredis\n\ngo 1.25.0\n\nrequire example.com/core v0.0.0\n\nreplace example.com/core => ../..\n",
	"adapter/goredis/goredis.go":      "package goredis\n\nimport \"example.com/core\"\n\n// New locks.\nfunc New() { core.Lock() }\n",
	"test/deep/go.mod":                "module example.com/core/test/deep\n\ngo 1.25.0\n\nrequire (\n\texample.com/core v0.0.0\n\texample.com/core/adapter/goredis v0.0.0\n)\n\nreplace (\n\texample.com/core => ../..\n\texample.com/core/adapter/goredis => ../../adapter/goredis\n)\n",
	"test/deep/deep.go":               "package deep\n\nimport \"example.com/core/adapter/goredis\"\n\n// Try tries.\nfunc Try() { goredis.New() }\n",
	"cmd/program/go.mod":              "module example.com/core/cmd/program\n\ngo 1.25.0\n\nrequire example.com/core v0.0.0\n\nreplace example.com/core => ../..\n",
	"cmd/program/main.go":             "package main\n\nimport \"example.com/core\"\n\nfunc main() { core.Lock() }\n",
	"tools/go.mod":                    "module example.com/core/tools\n\ngo 1.26.0\n",
	"deploy/helm/redlatch/Chart.yaml": "apiVersion: v2\nversion: 0.0.1\nappVersion: 0.0.1\n",
	"deploy/kubernetes/redlatch.yaml": "          image: \"ghcr.io/redlatch/redlatch:0.0.1\"\n",
	"docs/operations.md":              "  - https://github.com/redlatch/redlatch//deploy/kubernetes?ref=v0.0.1\n",
	"docs/shell.md":                   "COPY --from=ghcr.io/redlatch/redlatch:0.0.1 /usr/bin/redlatch /usr/bin/\n",
	"CHANGELOG.md":                    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Locks.\n",
}

// checkout makes a repository of small.
func checkout(t *testing.T) *repo {
	t.Helper()
	r := &repo{root: t.TempDir()}
	for name, text := range small {
		put(t, r, name, text)
	}
	do(t, r, "init", "--quiet", "--initial-branch=main")
	commit(t, r)
	return r
}

func put(t *testing.T, r *repo, name, text string) {
	t.Helper()
	path := filepath.Join(r.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func do(t *testing.T, r *repo, args ...string) string {
	t.Helper()
	out, err := r.git(args...)
	require.NoError(t, err)
	return out
}

func commit(t *testing.T, r *repo) {
	t.Helper()
	do(t, r, "add", "--all")
	do(t, r, "commit", "--quiet", "--message", "core: a change")
}

func released(t *testing.T, r *repo, version string) string {
	t.Helper()
	var said bytes.Buffer
	require.NoError(t, run(&said, r.root, version, options{}), &said)
	return said.String()
}

// refused checks that the release fails and leaves no trace.
func refused(t *testing.T, r *repo, version string, says ...string) {
	t.Helper()
	before := do(t, r, "rev-parse", "HEAD") + do(t, r, "tag") + do(t, r, "status", "--porcelain")
	var said bytes.Buffer
	err := run(&said, r.root, version, options{})
	require.Error(t, err, &said)
	for _, s := range says {
		require.Contains(t, said.String()+err.Error(), s)
	}
	require.Equal(t, before, do(t, r, "rev-parse", "HEAD")+do(t, r, "tag")+do(t, r, "status", "--porcelain"))
}

func TestReleaseTagsAllModulesOnOneCommit(t *testing.T) {
	t.Parallel()
	r := checkout(t)
	said := released(t, r, "v0.1.0")
	require.Contains(t, said, "git push --atomic origin HEAD v0.1.0 adapter/goredis/v0.1.0\n")
	require.Equal(t, "adapter/goredis/v0.1.0\nv0.1.0\n", do(t, r, "tag", "--points-at", "HEAD"))
	require.Equal(t, "release: v0.1.0\n", do(t, r, "log", "-1", "--format=%s"))
	require.Empty(t, do(t, r, "status", "--porcelain"))
	require.Contains(t, do(t, r, "show", "HEAD:adapter/goredis/go.mod"), "require example.com/core v0.1.0\n")
	require.Contains(t, do(t, r, "show", "HEAD:test/deep/go.mod"), "example.com/core/adapter/goredis v0.1.0\n")
	require.Contains(t, do(t, r, "show", "HEAD:cmd/program/go.mod"), "example.com/core v0.1.0\n")
	require.Regexp(t, `## \[Unreleased\]\n\n## \[0\.1\.0\] - \d{4}-\d\d-\d\d\n\n### Added`, do(t, r, "show", "HEAD:CHANGELOG.md"))
	require.Equal(t, "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\n", do(t, r, "show", "HEAD:deploy/helm/redlatch/Chart.yaml"))
	require.Contains(t, do(t, r, "show", "HEAD:deploy/kubernetes/redlatch.yaml"), `redlatch:0.1.0"`)
	require.Contains(t, do(t, r, "show", "HEAD:docs/operations.md"), "?ref=v0.1.0\n")
	require.Contains(t, do(t, r, "show", "HEAD:docs/shell.md"), "redlatch:0.1.0 /usr/bin/redlatch")
	out, err := r.goCommand(filepath.Join(r.root, "test/deep"), "build", "-mod=readonly", "./...")
	require.NoError(t, err, out)
	// The changelog has no new entry.
	refused(t, r, "v0.1.1", "CHANGELOG.md: no entry")
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	r := checkout(t)
	before := do(t, r, "rev-parse", "HEAD")
	var said bytes.Buffer
	require.NoError(t, run(&said, r.root, "v0.1.0", options{dryRun: true}), &said)
	require.Regexp(t, `adapter/goredis/go\.mod +require example\.com/core v0\.1\.0\n`, said.String())
	require.Regexp(t, `tag +adapter/goredis/v0\.1\.0\n`, said.String())
	require.Equal(t, before, do(t, r, "rev-parse", "HEAD"))
	require.Empty(t, do(t, r, "tag")+do(t, r, "status", "--porcelain"))
}

func TestInvalidReleaseIsRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, text string // committed before
		version          string
		says             string
	}{
		{name: "missing v", version: "0.1.0", says: `invalid version "0.1.0"`},
		{name: "missing patch", version: "v0.1", says: `invalid version "v0.1"`},
		{name: "another module path", version: "v2.0.0", says: "v2.0.0 needs module paths that end with /v2"},
		{name: "empty changelog", file: "CHANGELOG.md", text: "## [Unreleased]\n\n## [0.0.1]\n\n- Locks.\n", version: "v0.1.0", says: "no entry below"},
		{name: "module that does not build", file: "adapter/goredis/goredis.go", text: "package goredis\n\nfunc New() { none() }\n", version: "v0.1.0", says: "undefined: none"},
		{name: "program that does not build", file: "cmd/program/main.go", text: "package main\n\nfunc main() { none() }\n", version: "v0.1.0", says: "undefined: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := checkout(t)
			if c.file != "" {
				put(t, r, c.file, c.text)
				commit(t, r)
			}
			refused(t, r, c.version, c.says)
		})
	}
	t.Run("dirty tree", func(t *testing.T) {
		t.Parallel()
		r := checkout(t)
		put(t, r, "new.go", "package core\n")
		refused(t, r, "v0.1.0", "?? new.go")
	})
	t.Run("existing tag", func(t *testing.T) {
		t.Parallel()
		r := checkout(t)
		do(t, r, "tag", "adapter/goredis/v0.1.0")
		refused(t, r, "v0.1.0", "tag adapter/goredis/v0.1.0 exists")
	})
}

func TestTrialSkipsTheChangelog(t *testing.T) {
	t.Parallel()
	r := checkout(t)
	put(t, r, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")
	commit(t, r)
	var said bytes.Buffer
	require.NoError(t, run(&said, r.root, "v0.1.0", options{trial: true}), &said)
	require.Equal(t, "adapter/goredis/v0.1.0\nv0.1.0\n", do(t, r, "tag"))
}

// TestVersionMatchesAPIChanges changes a module, or packages that only the checkout uses, and releases
// it.
func TestVersionMatchesAPIChanges(t *testing.T) {
	t.Parallel()
	less := "package core\n\n// Lock locks.\nfunc Lock() {}\n"
	more := small["core.go"] + "\n// TryLock tries.\nfunc TryLock() {}\n"
	other := strings.ReplaceAll(small["core.go"], "Unlock()", "Unlock(force bool)")
	for _, c := range []struct {
		name, last, file, text string
		refused, fits          string
		says                   string
	}{
		{"fewer functions", "v0.1.0", "core.go", less, "v0.1.1", "v0.2.0", "BREAKS example.com/core: Unlock: removed"},
		{"another signature", "v0.1.0", "core.go", other, "v0.1.1", "v0.2.0", "BREAKS example.com/core: Unlock: changed from func() to func(bool)"},
		{"more functions", "v0.1.0", "core.go", more, "v0.1.1", "v0.2.0", "new    example.com/core: TryLock: added"},
		{"more functions after 1.0", "v1.0.0", "core.go", more, "v1.0.1", "v1.1.0", "need at least v1.1.0"},
		{"fewer functions after 1.0", "v1.0.0", "core.go", less, "v1.1.0", "", "need at least v2.0.0"},
		{"a nested module", "v0.1.0", "adapter/goredis/goredis.go", "package goredis\n\n// Other is new.\nfunc Other() {}\n", "v0.1.1", "v0.2.0-rc.1", "BREAKS example.com/core/adapter/goredis: New: removed"},
		{"internal", "v0.1.0", "internal/inside/inside.go", "package inside\n", "v0.1.0", "v0.1.1", "v0.1.0 is not higher than v0.1.0"},
		{"test", "v0.1.0", "test/deep/deep.go", "package deep\n", "v0.0.9", "v0.1.1", "v0.0.9 is not higher than v0.1.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := checkout(t)
			released(t, r, c.last)
			put(t, r, c.file, c.text)
			put(t, r, "CHANGELOG.md", strings.Replace(small["CHANGELOG.md"], "Locks", "Other locks", 1))
			commit(t, r)
			refused(t, r, c.refused, c.says)
			if c.fits != "" {
				released(t, r, c.fits)
			}
		})
	}
}

func TestPrintAPI(t *testing.T) {
	t.Parallel()
	r := checkout(t)
	var said bytes.Buffer
	require.NoError(t, printAPI(&said, r.root, ""))
	require.Equal(t, "No tag yet: any change is allowed.\n", said.String())
	released(t, r, "v0.1.0")
	put(t, r, "core.go", "package core\n\n// Lock locks.\nfunc Lock() {}\n")
	said.Reset()
	require.NoError(t, printAPI(&said, r.root, ""))
	require.Equal(t, "  BREAKS example.com/core: Unlock: removed\nThe next version after v0.1.0 must be at least v0.2.0.\n", said.String())
	said.Reset()
	require.Error(t, printAPI(&said, r.root, "nowhere"))
	do(t, r, "rm", "-r", "--quiet", "adapter")
	require.NoError(t, printAPI(&said, r.root, ""))
	require.Contains(t, said.String(), "BREAKS example.com/core/adapter/goredis: module removed\n")
}

func TestMinimumVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last string
		c    change
		want string
	}{
		{"", broken, "v0.1.0"},
		{"v0.3.4", nothing, "v0.3.5"},
		{"v0.3.4", added, "v0.4.0"},
		{"v0.3.4", broken, "v0.4.0"},
		{"v1.3.4", added, "v1.4.0"},
		{"v1.3.4", broken, "v2.0.0"},
		{"v0.4.0-rc.1", nothing, "v0.4.0"},
	} {
		require.Equal(t, c.want, least(c.last, c.c), c)
	}
	require.True(t, fits("v0.3.4", "v0.4.0-rc.1", broken))
	require.False(t, fits("v0.3.4", "v0.3.5", broken))
}

// command runs a program in a folder, with additional environment, and returns its output.
func command(t *testing.T, folder string, env []string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(words, " "), out)
	return string(out)
}
