package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// longArg is nearly as long as Linux allows.
var longArg = strings.Repeat("n", 100<<10)

var badTexts = []string{
	"", "\x1b[2J", longArg, " ", "\xff\xfe", "{", "}", "{}", "a{b", "a}b", "a\r\nb", "%s%d%!", "-1", "ключ🔑", strings.Repeat("{", 1000),
}

// badFlags contains invalid values for flags of each type.
var badFlags = map[string][]string{
	"string": nil, "stringArray": nil, "stringSlice": nil,
	"format":   {"", "x", "JSON", longArg, "\x1b[2J"},
	"bool":     {"maybe", "2", longArg, "\x1b[2J"},
	"int":      {"x", "1.5", "99999999999999999999", "-99999999999999999999", longArg, "0x", ""},
	"count":    {"x", "1.5", longArg, "", "\x1b[2J"},
	"duration": {"x", "5", "99999999999h", "-99999999999h", longArg, "1h1", "", "\x1b[2J"},
}

// usual contains valid arguments for commands that require some.
var usual = map[string][]string{
	"hold":   {"--max-hold=1s", "job"},
	"run":    {"job", "--", "true"},
	"status": {"job"},
	"unlock": {"--force", "job"},
	"watch":  {"--for=1s", "job"},

	"context use": {"prod"},
	"evict":       {"job", "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"},
}

// commands returns the visible commands by their paths.
func commands(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c.Runnable() && !c.Hidden {
			all[strings.TrimPrefix(c.CommandPath(), "redlatch ")] = c
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				add(sub)
			}
		}
	}
	add(cli.NewRoot(constructors...))
	require.GreaterOrEqual(t, len(all), 5, "the commands were not found: the check itself is broken")
	return all
}

type cliFlag struct{ name, kind string }

// flags returns the local and global flags of a command.
func flags(c *cobra.Command) []cliFlag {
	return append(flagsOf(c.InheritedFlags().VisitAll), flagsOf(c.LocalFlags().VisitAll)...)
}

// flagsOf uses reflection because pflag is not a direct dependency.
func flagsOf[F any](visit func(func(*F))) []cliFlag {
	var all []cliFlag
	visit(func(f *F) {
		fields := reflect.ValueOf(f).Elem()
		kind, _ := fields.FieldByName("Value").Interface().(interface{ Type() string })
		all = append(all, cliFlag{fields.FieldByName("Name").String(), kind.Type()})
	})
	return all
}

func sensible(t *testing.T, got program.Outcome, what string) {
	t.Helper()
	assert.NotZero(t, got.Code, what)
	assert.NotContains(t, got.Stderr, "goroutine ", what) // a panic
	assert.NotContains(t, got.Stderr, "\x1b", what)
	assert.NotContains(t, got.Stderr, "sesame", what)
	assert.True(t, utf8.ValidString(got.Stderr), what)
	assert.Less(t, len(got.Stderr), 2*sanitize.MaxMessage, what)
	assert.True(t, strings.HasPrefix(got.Stderr, "redlatch: "), "%s: %.200q", what, got.Stderr)
}

func call(path string, f cliFlag, value string) []string {
	args := append(strings.Fields(path), "--"+f.name+"="+value)
	return append(args, usual[path]...)
}

func TestUnparsableFlagIsOneLineError(t *testing.T) {
	t.Parallel()
	url, tried := program.NoServer(t), 0
	for path, c := range commands(t) {
		for _, f := range flags(c) {
			require.Contains(t, badFlags, f.kind, "%s --%s: say what is bad", path, f.name)
			for _, value := range testlevel.Part(badFlags[f.kind], 4, path+f.name) {
				got := inProcess(t, call(path, f, value))
				require.Error(t, got, "%s --%s=%.40q", path, f.name, value)
				line := sanitize.Message(got.Error())
				assert.Contains(t, line, "--"+f.name, "which flag?")
				assert.Less(t, len(line), 2*sanitize.MaxMessage)
				assert.NotContains(t, line, "\x1b")
				tried++
			}
		}
	}
	require.Greater(t, tried, 50)
	sensible(t, program.Finish(t, url, "run", "--wait="+longArg, "job", "--", "true"), "a long flag")
	sensible(t, program.Finish(t, url, "status", "--\x1b[2J"), "a flag that is none")
}

// inProcess parses a command line but does not run the command.
func inProcess(t *testing.T, args []string) error {
	t.Helper()
	root := cli.NewRoot(constructors...)
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return c.FlagErrorFunc()(c, err)
	}
	return c.ValidateArgs(c.Flags().Args())
}

func TestInvalidArgumentIsOneLineError(t *testing.T) {
	t.Parallel()
	srv := redistest.Mini(t)
	for path := range commands(t) {
		for _, text := range testlevel.Part(badTexts, len(badTexts), path) {
			for i := range usual[path] {
				if usual[path][i] == "--" || path == "run" && i > 0 && text != "" && text != longArg {
					continue
				}
				args := append([]string(nil), usual[path]...)
				args[i] = text
				what := fmt.Sprintf("%s %.60q", path, args)
				got := program.Finish(t, srv.URL(), append(strings.Fields(path), args...)...)
				if got.Code == 0 || got.Stderr == "" && got.Stdout != "" { // a strange name is valid
					assert.NotContains(t, got.Stdout, "\x1b", what)
					continue
				}
				sensible(t, got, what)
			}
		}
	}
}

// FuzzArguments parses command lines with one argument per line.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"run\njob\n--\ntrue", "run\n--wait\n10s\n--try\njob\n--\na", "status\n--for=1h\njob", "evict\na\nb\n--even-if-alive", "demo\n--duration=-1s",
		"serve\n--addr\n:0", "--version", "--redis\nredis://:x@h\nstatus\nn", "run\n--lease=99999999999h\nj\n--\nt", "\n", "--", "-", "run\n--\n--\n--", "help\nrun",
		"run\n--conflict-exit-code=0x7f\nn\n--\nt", "completion\nbash", "__complete\nrun\n",
		"-0\n\n-0", "-\x96\x96\x96\x96\x96", "-\xc60\xbb\xbb\xbb\xbb\xbb\xbb\xbb\xbb\xd0\xff", "0000000\xb10000000000000000000", "A\xe5\x80\xe5\x800", "\xf5A", "tAAAetAAA", "\"", "-0\x1d00000000\x12000000", "A\xe5\x80倀", "T", "\xdcܖڶ\x96ڶ",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if err := inProcess(t, strings.Split(lines, "\n")); err != nil {
			line := sanitize.Message(err.Error())
			require.LessOrEqual(t, len(line), 3*sanitize.MaxMessage) // replacement characters take three bytes
			require.True(t, utf8.ValidString(line))
			require.NotContains(t, line, "\x1b")
		}
	})
}

// usageCode is the exit code for a wrong command line.
func usageCode(path string) int {
	switch path {
	case "run", "hold", "release":
		return 125
	}
	return cli.CodeUsage
}

// meaningless are flags that a command must reject.
var meaningless = map[string][]string{
	"context":      {"--no-headers"},
	"context list": {"--output=wide"},
	"context show": {"--context=nonsense", "--context=", "--context=a --redis=redis://h"},
	"context use":  {"--json"},
	"demo":         {"--duration=1ns", "--duration=2h", "--redis=nonsense", "--redis=redis-cluster://h"},
	"doctor":       {"--need=nonsense", "--redis=nonsense"},
	"evict":        {"--for=1s", "--all-dead --even-if-alive", "--base64", "--password-file=/nonsense", "--redis=nonsense"},
	"exporter":     {"--every=1ns", "--listen=nonsense", "--match=nonsense", "--redis=nonsense"},
	"hold":         {"--try --wait=1s", "--lease=1ns", "--permits=nonsense", "--for-pid=0", "--on-lost-signal=nonsense", "--redis=nonsense"},
	"list":         {"--kind=nonsense", "--sort=nonsense", "--limit=-1", "--redis=nonsense"},
	"release":      {"--wait=1ns"},
	"run":          {"--try --wait=1s", "--lease=1ns", "--on-lost=nonsense", "--permits=nonsense", "--redis=nonsense", "--tls-ca=/nonsense"},
	"serve":        {"--addr=nonsense"},
	"status":       {"--for=0s", "--output=nonsense", "--waiters=-1", "--base64", "--tls-ca=/nonsense", "--redis=redis://h/orders"},
	"top":          {"--every=1ns", "--redis=nonsense", "--every=1s"}, // the last without a terminal
	"ui":           {"--addr=nonsense", "--every=1ns", "--addr=0.0.0.0:0", "--auth=/nonsense", "--redis=nonsense"},
	"unlock":       {"--for=0s", "--dead=a:1 --even-if-alive", "--force=false", "--base64", "--redis=nonsense"},
	"watch":        {"--for=0s", "--base64", "--redis=nonsense"},
}

func TestUsageErrorsShareOneExitCode(t *testing.T) {
	t.Parallel()
	url := program.NoServer(t)
	for path := range commands(t) {
		require.Contains(t, meaningless, path, "say which of its flags can mean nothing")
		lines := [][]string{
			append(append(strings.Fields(path), "--no-such-flag"), usual[path]...),
			append(append(strings.Fields(path), "--tls-insecure-skip-verify=maybe"), usual[path]...),
		}
		if path != "status" { // it takes any number of names
			lines = append(lines, append(strings.Fields(path), "a", "b", "c", "d", "e"))
		}
		if usual[path] != nil {
			lines = append(lines, strings.Fields(path))
		}
		for _, flags := range meaningless[path] {
			args := append(append(strings.Fields(path), usual[path]...), strings.Fields(flags)...)
			if path == "run" {
				args = append(append([]string{path}, strings.Fields(flags)...), usual[path]...)
			}
			if flags == "--all-dead --even-if-alive" {
				args = []string{path, "job", "--all-dead", "--even-if-alive"}
			}
			lines = append(lines, args)
		}
		for _, args := range testlevel.Part(lines, len(lines), path) {
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				got := program.Finish(t, url, args...)
				require.Equal(t, usageCode(path), got.Code, got.Stderr)
				program.OneLine(t, got.Stderr)
				require.NotContains(t, got.Stderr, "cannot reach")
				require.Empty(t, got.Stdout)
			})
		}
	}
}

func TestHelpAndCompletionRejectUnknownNames(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"version":                    "redlatch: unknown command version; did you mean --version? `redlatch --help` lists the commands\n",
		"help stauts":                "redlatch: unknown command stauts; did you mean status? `redlatch --help` lists the commands\n",
		"completion basch":           "redlatch: unknown shell basch. Usage: redlatch completion bash|fish|powershell|zsh\n",
		"completion bash x":          "redlatch: too many arguments: x. Usage: redlatch completion bash; see `redlatch completion bash --help`\n",
		"--tls-insecure-skip-verify": "",
		"help status":                "",
		"completion":                 "",
		"completion bash":            "",
	} {
		got := program.Finish(t, program.NoServer(t), strings.Fields(line)...)
		require.Equal(t, says, got.Stderr, line)
		require.Equal(t, says != "", got.Code == cli.CodeUsage, line)
		require.Equal(t, says == "", got.Code == 0 && got.Stdout != "", line)
	}
}

func TestUnreachableServerIsNotUsageError(t *testing.T) {
	t.Parallel()
	for path, args := range map[string][]string{"status": {"job"}, "list": nil, "watch": {"job"}} {
		require.Equal(t, cli.CodeFailed, program.Finish(t, program.NoServer(t), append([]string{path}, args...)...).Code, path)
	}
}
