package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// output runs a command line in this process.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	root := cli.NewRoot(constructors...)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(io.Discard)
	require.NoError(t, root.Execute())
	return out.String()
}

func TestHelpNeedsNoServerAndFitsTerminal(t *testing.T) {
	t.Parallel()
	for path, c := range commands(t) {
		out := output(t, append(strings.Fields(path), "--help")...)
		program.Narrow(t, out)
		if !strings.HasPrefix(path, "completion") {
			require.NotEmpty(t, c.Long, path)
			require.Contains(t, out, "\nExamples:\n", path)
			require.Contains(t, out, "\nFlags:\n", path)
		}
	}
	out := program.OK(t, program.NoServer(t), "--help")
	program.Narrow(t, out)
	require.NotContains(t, out, "sesame", "help shows what REDIS_URL holds")
	require.NotContains(t, out, "__", "a hidden command shows")
	for _, path := range []string{"list", "watch", "demo", "serve"} {
		require.Contains(t, commands(t)[path].Long, "128+n", path)
		require.Contains(t, commands(t)[path].Long, "143 SIGTERM", path)
	}
	require.Contains(t, out, "143 for SIGTERM")

	out = program.OK(t, program.NoServer(t), "--version")
	require.Regexp(t, `^redlatch \S+.* go1\.\d+`, out)
}

func TestUsageErrorsSuggestCommand(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"status":            "redlatch: NAME is missing. Usage: redlatch status NAME...; see `redlatch status --help`\n",
		"status -o xml a":   "redlatch: invalid argument \"xml\" for \"-o, --output\" flag: must be json, yaml, wide or name\n",
		"context use a b":   "redlatch: too many arguments: b. Usage: redlatch context use NAME; ",
		"evict job":         "redlatch: OWNER|--all-dead is missing. Usage: redlatch evict NAME OWNER|--all-dead; ",
		"evict":             "redlatch: NAME and OWNER|--all-dead are missing. ",
		"ui --every soon":   "redlatch: invalid argument \"soon\" for \"--every\" flag: must have a unit, such as 10s, ",
		"list --limit x":    "redlatch: invalid argument \"x\" for \"--limit\" flag: must be an integer\n",
		"list --json=maybe": "redlatch: invalid argument \"maybe\" for \"--json\" flag: must be true or false\n",
		"list --limit " + strings.Repeat("9", 20): "redlatch: invalid argument \"99999999999999999999\" for \"--limit\" flag: out of range\n",
		"unlock --force":        "redlatch: NAME is missing. Usage: redlatch unlock --force NAME; ",
		"watch":                 "redlatch: NAME|PATTERN is missing. ",
		"list a b":              "redlatch: too many arguments: b (a pattern in quotes is not expanded by the shell). Usage: redlatch list [PATTERN]; ",
		"release a b":           "redlatch: too many arguments: b. Usage: redlatch release [NAME]; ",
		"__manual --date x .":   "redlatch: --date: parsing time ",
		"evict --base64 YQ== a": "redlatch: --base64: a is not valid base64\n",
		"doctor now":            "redlatch: too many arguments: now. Usage: redlatch doctor; ",
		"status --jsn x":        "redlatch: unknown flag: --jsn. `redlatch status --help` lists the flags\n",
		"lock-everything x":     "redlatch: unknown command lock-everything. `redlatch --help` lists the commands\n",
	} {
		got := program.Fails(t, program.NoServer(t), usageCode(strings.Fields(line)[0]), says, strings.Fields(line)...)
		require.True(t, strings.HasPrefix(got.Stderr, says), "%s: %s", line, got.Stderr)
	}
}

func TestExitCodesOfHelpAndDocsAgree(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	require.True(t, strings.Contains(string(page), "\n"+cli.ExitCodesTable()+"\n"), "the page needs this table:\n%s", cli.ExitCodesTable()) //nolint:testifylint // Contains prints the page
	topic := program.OK(t, program.NoServer(t), "help", "exit-codes")
	program.Narrow(t, topic)
	require.Contains(t, program.Words(topic), "128+n signal n ended the command: 130 for SIGINT, 141 for SIGPIPE, 143 for SIGTERM")
	require.Contains(t, unpacked(t, written(t)["man/redlatch.1.gz"]), cli.ExitCodesText())
}

func TestFlagHelpIsWrappedOnce(t *testing.T) {
	t.Parallel()
	root := cli.NewRoot(constructors...)
	for _, cmd := range append(root.Commands(), root) {
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			require.Regexp(t, `^ +(-\w, )?--`, line, cmd.Name())
		}
	}
}

func TestMessageNamesProgramOnce(t *testing.T) {
	t.Parallel()
	for command, code := range map[string]int{"status": 2, "unlock --force": 2, "hold": 125} {
		got := program.Finish(t, program.NoServer(t), append(strings.Fields(command), "")...)
		require.Equal(t, program.Outcome{Code: code, Stderr: "redlatch: invalid argument: the lock's name is empty\n"}, got)
	}
	for text, want := range map[string]string{
		"redlatch: lock lost":                             "lock lost",
		`lock "x": redlatch: lock lost`:                   `lock "x": lock lost`,
		"redlatch: redlatch: a; redlatch: b\nredlatch: c": "a; b\nc",
		`lock "redlatch: x": redlatch: y`:                 `lock "redlatch: x": y`,
		`lock "a\": redlatch: x": z`:                      `lock "a\": redlatch: x": z`,
		"see redlatch: that is all":                       "see redlatch: that is all",
	} {
		require.Equal(t, want, sanitize.WithoutPrefix(text))
	}
}

// Directives that turn the completion of file names on or off.
const (
	offersFiles   = ":0\n"
	offersNothing = ":4\n"
)

func offered(t *testing.T, words ...string) string {
	t.Helper()
	return output(t, append([]string{"__complete"}, words...)...)
}

func TestShellCompletesFilesForFileFlags(t *testing.T) {
	t.Parallel()
	files := []string{"password-file", "tls-ca", "tls-cert", "tls-key", "audit-file", "auth"}
	values := map[string]string{
		"on-lost":        "term\nkill\nignore\n",
		"on-lost-signal": "TERM\nINT\nHUP\nUSR1\nUSR2\nKILL\n",
		"kind":           "plain\nfair\nfenced\nfair-fenced\nreadwrite\n",
		"sort":           "name\nlease\nqueue\n",
		"need":           "plain\nbraces\nfair\ntokens\n",
		"allow":          "evict\nunlock\n",
		"output":         "json\nyaml\n",
	}
	for path, c := range commands(t) {
		if !strings.HasPrefix(path, "completion") && path != "context" {
			require.Equal(t, offersNothing, offered(t, append(strings.Fields(path), "")...), path)
		}
		for _, f := range flags(c) {
			if f.kind == "bool" {
				continue
			}
			said := offered(t, append(strings.Fields(path), "--"+f.name, "")...)
			switch {
			case slices.Contains(files, f.name):
				assert.Equal(t, offersFiles, said, "%s --%s", path, f.name)
			case values[f.name] != "":
				assert.True(t, strings.HasPrefix(said, values[f.name]), "%s --%s: %s", path, f.name, said)
				assert.True(t, strings.HasSuffix(said, offersNothing), "%s --%s: %s", path, f.name, said)
			default:
				assert.Equal(t, offersNothing, said, "%s --%s", path, f.name)
			}
		}
	}
	require.Equal(t, offersNothing, offered(t, "evict", "job", ""))
	require.Contains(t, offered(t, "doctor", "--need", "plain,f"), "\nplain,fair\n")
	require.Contains(t, offered(t, "do"), "doctor\tExamine a server")
	require.Contains(t, offered(t, "run", "--on"), "--on-lost\t")
}

func TestShellCompletesCommandsForRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"run", ""}, offersNothing},
		{[]string{"run", "--wait", "10s", "job", ""}, "--\n" + offersNothing},
		{[]string{"run", "job", "--", ""}, offersFiles},
		{[]string{"run", "job", "--", "cp", ""}, offersFiles},
		{[]string{"run", "job", "--", "cp", "-"}, offersFiles},
	} {
		require.Equal(t, c.want, program.OK(t, program.NoServer(t), append([]string{"__complete"}, c.words...)...), "%q", c.words)
	}
}

// written returns the files that a packager installs.
func written(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	output(t, "__manual", "--date", "2026-11-25T23:30:00-02:00", "--of-version", "v1.2.3", folder)
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

// unpacked returns a man page without its escapes.
func unpacked(t *testing.T, page string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(page))
	require.NoError(t, err)
	require.Zero(t, r.ModTime)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ti`, "~", `\e`, `\`, "\n"+`\&.`, "\n.").Replace(string(text))
}

func TestManPagesListEveryFlag(t *testing.T) {
	t.Parallel()
	files := written(t)
	all := commands(t)
	all[""] = cli.NewRoot(constructors...)
	pages := 0
	for path, cmd := range all {
		if strings.HasPrefix(path, "completion") {
			continue // packages contain its output
		}
		pages++
		name := "man/" + strings.TrimSuffix("redlatch-"+strings.ReplaceAll(path, " ", "-"), "-") + ".1.gz"
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
	page := unpacked(t, files["man/redlatch.1.gz"])
	for path := range commands(t) {
		if !strings.HasPrefix(path, "completion") {
			assert.Contains(t, page, "\nredlatch-"+strings.ReplaceAll(path, " ", "-")+"(1) ")
		}
	}
	assert.NotContains(t, page, "__")
	assert.Contains(t, page, "share locks on one Redis or Valkey server.\n\nThe exit code is 0")
	require.Equal(t, files, written(t), "two releases of one commit differ")
}

func TestPackagedCompletionsMatchCommand(t *testing.T) {
	t.Parallel()
	files := written(t)
	for shell, c := range map[string]struct{ name, says string }{
		"bash": {"redlatch.bash", "__start_redlatch"}, "zsh": {"_redlatch", "#compdef redlatch"}, "fish": {"redlatch.fish", "complete -c redlatch"},
	} {
		out := output(t, "completion", shell)
		require.Contains(t, out, c.says)
		assert.Equal(t, out, files["completions/"+c.name])
	}
}
