package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const core = "github.com/redlatch/redlatch"

// step is a documented installation of a module or a program.
type step struct {
	install string
	pages   []string
	program program // of the first page, for a module
}

// program is the rest of a program that runs the first Go block of a page. SERVER stands for the server's
// address, and CORE for the core's path.
type program struct{ imports, before, after string }

const locks = `defer client.Close()
	return rlock.New(client, "stranger").Do(ctx, ship)`

var walk = []step{
	{"go get " + core, []string{"README.md", "README.zh-CN.md"}, program{imports: `"errors"; "CORE"`}},
	{"go get " + core + "/adapter/goredis", []string{"adapter/goredis/README.md"}, program{
		imports: `"github.com/redis/go-redis/v9"; "CORE/adapter/goredis"`,
		before:  `rdb := redis.NewClient(&redis.Options{Addr: "SERVER"})`,
	}},
	{"go get " + core + "/adapter/rueidis", []string{"adapter/rueidis/README.md"}, program{
		imports: `"log"; "github.com/redis/rueidis"; latchrueidis "CORE/adapter/rueidis"`,
		before: `rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"SERVER"}})
	if err != nil {
		return err
	}`,
		after: locks,
	}},
	{"go get " + core + "/gocronredlatch", []string{"gocronredlatch/README.md"}, program{
		imports: `"time"; "github.com/go-co-op/gocron/v2"; "CORE"; "CORE/gocronredlatch"`,
		before: `report := ship
	client, err := redlatch.Open(ctx, "redis://SERVER")
	if err != nil {
		return err
	}`,
		after: `if err != nil {
		return err
	}
	scheduler.Start()
	if err := scheduler.Shutdown(); err != nil {
		return err
	}
	` + locks,
	}},
	{"go get " + core + "/otelredlatch", []string{"docs/observability.md"}, program{imports: `"CORE"; "CORE/otelredlatch"`, after: locks}},
	{"go get " + core + "/promredlatch", []string{"docs/observability.md"}, program{
		imports: `"github.com/prometheus/client_golang/prometheus"; "CORE"; "CORE/promredlatch"`, after: locks,
	}},
	{install: "go install " + core + "/cmd/redlatch@latest", pages: []string{"README.md", "README.zh-CN.md"}},
	{install: "go install " + core + "/redlatchvet@latest", pages: []string{"docs/testing-your-code.md"}},
}

// TestNewUserInstallsAndUsesRelease makes a release in a clone and uses it outside of the checkout.
func TestNewUserInstallsAndUsesRelease(t *testing.T) {
	t.Parallel()
	clone := cloned(t)
	last, err := clone.lastTag()
	require.NoError(t, err)
	version := least(last, added) // before 1.0 the API may break with it
	t.Log(command(t, clone.root, nil, "go", "run", "-C", "scripts/release", ".", "-trial", version))
	env := stranger(t, proxy(t, clone, version))
	url := redistest.Start(t).URL()
	for _, s := range walk {
		t.Run(s.install, func(t *testing.T) {
			t.Parallel()
			if path, ok := strings.CutPrefix(s.install, "go get "); ok {
				s.useModule(t, env, version, path, s.text(t, clone, strings.TrimPrefix(url, "redis://")))
				return
			}
			program := s.installed(t, env)
			mod := command(t, ".", nil, "go", "version", "-m", program)
			if path.Base(program) == "redlatchvet" {
				require.Contains(t, mod, "\tmod\t"+core+"/redlatchvet\t"+version+"\t")
				command(t, ".", nil, "go", "vet", "-vettool="+program, ".")
				return
			}
			require.Contains(t, mod, "\tmod\t"+core+"\t"+version+"\t")
			require.Equal(t, "ok\n", command(t, ".", nil, program, "run", "--redis", url, "stranger", "--", "echo", "ok"))
		})
	}
}

// stranger returns the environment of a user with the given proxy, in addition to the environment's
// proxies. It does not query the checksum database, because the checkout's go.sum files have
// verified the module cache.
func stranger(t *testing.T, proxy string) []string {
	t.Helper()
	cache := strings.TrimSpace(command(t, ".", nil, "go", "env", "GOMODCACHE"))
	others := strings.TrimSpace(command(t, ".", nil, "go", "env", "GOPROXY"))
	home := t.TempDir()
	return []string{
		"GOPROXY=" + strings.Join([]string{"file://" + proxy, "file://" + filepath.Join(cache, "cache", "download"), others}, ","),
		"GONOSUMDB=*", "GONOPROXY=none", "GOPRIVATE=", "GOWORK=off", "GOTOOLCHAIN=local",
		// With -trimpath the build cache works across folders.
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
		"GOMODCACHE=" + filepath.Join(home, "mod"), "GOBIN=" + filepath.Join(home, "bin"),
	}
}

// useModule installs the module path into an empty module and runs the program of its page.
func (s step) useModule(t *testing.T, env []string, version, path, text string) {
	t.Helper()
	folder := t.TempDir()
	command(t, folder, env, "go", "mod", "init", "example.com/stranger")
	command(t, folder, env, strings.Fields(s.install)...)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(text), 0o600))
	require.Equal(t, "ok", command(t, folder, env, "go", "run", "."), text)

	modules := command(t, folder, env, "go", "list", "-m", "all")
	require.Contains(t, modules, path+" "+version+"\n")
	require.Contains(t, modules, core+" "+version+"\n")
	require.NotContains(t, modules, "=>")
}

// text returns the program of the first Go block after the command in the first page, or before it.
func (s step) text(t *testing.T, r *repo, server string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(r.root, s.pages[0]))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(page), "    "+s.install+"\n")
	_, block, _ := strings.Cut(after+string(page), "```go\n")
	block, _, found := strings.Cut(block, "```")
	require.True(t, found)
	return strings.NewReplacer("localhost:6379", server, "SERVER", server, "CORE", core).Replace(fmt.Sprintf(`package main

import ("context"; "CORE/rlock"; %s)

func ship(context.Context) error { print("ok"); return nil }

func main() {
	if err := run(context.Background()); err != nil {
		panic(err)
	}
}

func run(ctx context.Context) (err error) {
	%s
	%s
	%s
	return nil
}
`, s.program.imports, s.program.before, block, s.program.after))
}

// installed installs a program and returns its path.
func (s step) installed(t *testing.T, env []string) string {
	t.Helper()
	command(t, t.TempDir(), env, strings.Fields(s.install)...)
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "GOBIN=") })
	return filepath.Join(strings.TrimPrefix(env[i], "GOBIN="), path.Base(strings.TrimSuffix(s.install, "@latest")))
}

// TestDocsInstallSameModules compares the commands in the docs with walk.
func TestDocsInstallSameModules(t *testing.T) {
	t.Parallel()
	r, err := open(".")
	require.NoError(t, err)
	said := map[string][]string{} // pages, by commands
	command := regexp.MustCompile(`go (?:get|install) ` + regexp.QuoteMeta(core) + `[^\s` + "`" + `]*`)
	for _, page := range strings.Fields(do(t, r, "ls-files", "--cached", "--others", "--exclude-standard", "--full-name", ":/*.md")) {
		text, err := os.ReadFile(filepath.Join(r.root, page))
		require.NoError(t, err)
		for _, found := range command.FindAllString(string(text), -1) {
			said[found] = append(said[found], page)
		}
	}
	for _, s := range walk {
		for _, page := range s.pages {
			require.Contains(t, said[s.install], page, s.install)
		}
		delete(said, s.install)
	}
	require.Empty(t, said, "commands missing in walk")

	var installed, published []string
	for _, s := range walk {
		if path := strings.TrimSuffix(strings.Fields(s.install)[2], "@latest"); path != core+"/cmd/redlatch" { // of the core
			installed = append(installed, path)
		}
	}
	for _, m := range r.published() {
		published = append(published, m.path())
	}
	require.ElementsMatch(t, published, installed, "the walk installs all modules for users")
}

// proxy writes the tags of a version into a folder for GOPROXY: each module's list, and a .info, .mod and .zip
// file.
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

// cloned copies the checkout, including uncommitted changes.
func cloned(t *testing.T) *repo {
	t.Helper()
	here, err := open(".")
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "clone")
	do(t, here, "clone", "--quiet", here.root, folder)
	// In CI the checkout is on a detached HEAD.
	command(t, folder, nil, "git", "checkout", "--quiet", "-B", "trial")
	command(t, folder, nil, "git", "--work-tree="+here.root, "add", "--all")
	command(t, folder, nil, "git", "commit", "--quiet", "--allow-empty", "--message", "uncommitted changes")
	command(t, folder, nil, "git", "reset", "--quiet", "--hard")
	clone, err := open(folder)
	require.NoError(t, err)
	return clone
}

func TestMain(m *testing.M) {
	config, err := filepath.Abs("testdata/gitconfig")
	if err != nil {
		log.Fatal(err)
	}
	// Fix the author on every machine, and sign nothing.
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "release", "GIT_AUTHOR_EMAIL": "release@example.com",
		"GIT_COMMITTER_NAME": "release", "GIT_COMMITTER_EMAIL": "release@example.com",
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1",
	} {
		_ = os.Setenv(name, value)
	}
	redistest.Main(m)
}
