package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
)

// written writes the man pages and the completions into a folder, as a packager does, and
// returns them by their names there.
func written(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	got := program.Finish(t, program.NoServer(t), "__manual", "--date", "2026-11-25T23:30:00-02:00", "--of-version", "v1.2.3", folder)
	require.Equal(t, 0, got.Code, got.Stderr)
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name, err = filepath.Rel(folder, name)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	require.NoError(t, err)
	return files
}

// unpacked returns the text of a man page, with hyphens and quotes as readers see them.
func unpacked(t *testing.T, page string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(page))
	require.NoError(t, err)
	require.Zero(t, r.ModTime)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ti`, "~", `\e`, `\`, "\n"+`\&.`, "\n.").Replace(string(text))
}

// Each command has a page, and each of its flags is there with all that the help says of it.
func TestEveryFlagIsInTheManPageOfItsCommand(t *testing.T) {
	t.Parallel()
	files := written(t)
	all := commands(t)
	all[""] = cli.NewRoot(constructors...)
	pages := 0
	for path, cmd := range all {
		if strings.HasPrefix(path, "completion") {
			continue // packages have what it prints
		}
		pages++
		name := "man/" + strings.TrimSuffix("redlatch-"+path, "-") + ".1.gz"
		if !assert.NotEmpty(t, files[name], name) {
			continue
		}
		page := unpacked(t, files[name])
		for _, f := range append(flags(cmd), cliFlag{name: "help"}) {
			assert.Contains(t, page, " --"+f.name, "%s --%s", path, f.name)
		}
		words := program.Words(page)
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages() + cmd.InheritedFlags().FlagUsages()) {
			says := strings.TrimSpace(line[strings.LastIndex(line, "  "):])
			assert.Contains(t, words, program.Words(says), "%s: %s", path, line)
		}
		for line := range strings.Lines(cmd.Example) {
			assert.Contains(t, page, strings.TrimSpace(line), path)
		}
		assert.Contains(t, page, `"2026-11-26" "redlatch v1.2.3"`, path)
	}
	require.Equal(t, pages+3, len(files), "there is a page of no command") //nolint:testifylint // Len prints all files
}

// The page of the program names those of all commands, and none that is hidden.
func TestTheManPageOfRedlatchNamesTheOthers(t *testing.T) {
	t.Parallel()
	page := unpacked(t, written(t)["man/redlatch.1.gz"])
	for path := range commands(t) {
		if !strings.HasPrefix(path, "completion") {
			assert.Contains(t, page, "\nredlatch-"+path+"(1) ")
		}
	}
	assert.NotContains(t, page, "__")
	assert.Contains(t, page, "for one lock on one Redis or Valkey.\n\nThe exit code is 0")
}

// Two releases of one commit are the same, byte by byte.
func TestTheManualIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	first := written(t)
	require.Equal(t, first, written(t))
}

func TestCompletionsOfPackagesAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	files := written(t)
	for name, shell := range map[string]string{"redlatch.bash": "bash", "redlatch.fish": "fish", "_redlatch": "zsh"} {
		want := program.Finish(t, program.NoServer(t), "completion", shell).Stdout
		assert.Equal(t, want, files["completions/"+name])
	}
}

func TestTheManualNeedsADate(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, program.NoServer(t), "__manual", "--date", "today", t.TempDir())
	require.Equal(t, cli.CodeUsage, got.Code)
	program.OneLine(t, got.Stderr)
}
