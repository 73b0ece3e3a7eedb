package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

func TestVersionAndHelpNeedNoServer(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, program.NoServer(t), "--version")
	require.Equal(t, 0, got.Code)
	require.Regexp(t, `^redlatch \S+.* go1\.\d+`, got.Stdout)
	require.Equal(t, got, program.Finish(t, program.NoServer(t), "version"))
	for _, name := range []string{"run", "hold", "release", "status", "evict", "unlock", "doctor", "serve", "demo"} {
		got := program.Finish(t, program.NoServer(t), name, "--help")
		require.Equal(t, 0, got.Code)
		require.Contains(t, got.Stdout, "Examples:\n")
		require.NotContains(t, got.Stdout, "sesame", "help shows what REDIS_URL holds")
	}
	got = program.Finish(t, program.NoServer(t), "--help")
	require.NotContains(t, got.Stdout, "__", "a hidden command shows")
}

func TestUnknownCommandsAreTypedWrong(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, program.NoServer(t), "lock-everything")
	require.Equal(t, cli.CodeUsage, got.Code)
	program.OneLine(t, got.Stderr)
}

// What is typed wrong is answered with what to type.
func TestUsageErrorsSayWhatToType(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"status":             "redlatch: NAME is missing. Usage: redlatch status NAME; `redlatch status --help` tells more\n",
		"status a b":         "redlatch: there are too many arguments: b. Usage: redlatch status NAME; ",
		"evict job":          "redlatch: OWNER|--all-dead is missing. Usage: redlatch evict NAME OWNER|--all-dead; ",
		"evict":              "redlatch: NAME and OWNER|--all-dead are missing. ",
		"run --wait 10 a --": "redlatch: invalid argument \"10\" for \"--wait\" flag: a time has a unit, such as 10s, 500ms or 1h30m\n",
		"list --every soon":  "redlatch: invalid argument \"soon\" for \"--every\" flag: a time has a unit, such as 10s, ",
		"list --limit x":     "redlatch: invalid argument \"x\" for \"--limit\" flag: it is a whole number\n",
		"list --json=maybe":  "redlatch: invalid argument \"maybe\" for \"--json\" flag: it is true or false\n",
		"list --limit " + strings.Repeat("9", 20): "redlatch: invalid argument \"99999999999999999999\" for \"--limit\" flag: it is out of range\n",
		"unlock --force":    "redlatch: NAME is missing. Usage: redlatch unlock --force NAME; ",
		"watch":             "redlatch: NAME|PATTERN is missing. ",
		"list a b":          "redlatch: there are too many arguments: b (a pattern in quotes is not expanded by the shell). Usage: redlatch list [PATTERN]; ",
		"hold":              "redlatch: NAME is missing. Usage: redlatch hold [-s] {NAME | --permits NAME:N}; ",
		"release a b":       "redlatch: there are too many arguments: b. Usage: redlatch release [NAME]; ",
		"doctor now":        "redlatch: there are too many arguments: now. Usage: redlatch doctor; ",
		"run job":           "redlatch: NAME or --permits comes before --, and COMMAND behind it. Usage: redlatch run ",
		"status --jsn x":    "redlatch: unknown flag: --jsn. `redlatch status --help` lists the flags\n",
		"run --waite 1s x":  "redlatch: unknown flag: --waite. `redlatch run --help` lists the flags. COMMAND and its flags come behind --\n",
		"stauts x":          "redlatch: there is no command stauts, but status. `redlatch --help` lists the commands\n",
		"lock-everything x": "redlatch: there is no command lock-everything. `redlatch --help` lists the commands\n",
	} {
		got := program.Finish(t, program.NoServer(t), strings.Fields(line)...)
		require.NotZero(t, got.Code, line)
		program.OneLine(t, got.Stderr)
		require.True(t, strings.HasPrefix(got.Stderr, says), "%s: %s", line, got.Stderr)
	}
}

func TestHelpOfEveryCommandHasExamplesAndFlagsThatFitATerminal(t *testing.T) {
	t.Parallel()
	for _, cmd := range cli.NewRoot(constructors...).Commands() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		require.NotEmpty(t, cmd.Example, cmd.Name())
		require.NotEmpty(t, cmd.Long, cmd.Name())
		help := program.Finish(t, program.NoServer(t), cmd.Name(), "--help").Stdout
		_, flags, found := strings.Cut(help, "\nFlags:\n")
		require.True(t, found, cmd.Name())
		program.Narrow(t, flags)
	}
}

// What is broken by hand is broken once more for the width of a terminal.
func TestHelpOfFlagsIsBrokenIntoLinesOnce(t *testing.T) {
	t.Parallel()
	root := cli.NewRoot(constructors...)
	for _, cmd := range append(root.Commands(), root) {
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			require.Regexp(t, `^ +(-\w, )?--`, line, cmd.Name())
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	program.Narrow(t, program.Finish(t, program.NoServer(t), "--help").Stdout)
	for path := range commands(t) {
		program.Narrow(t, program.Finish(t, program.NoServer(t), append(strings.Fields(path), "--help")...).Stdout)
	}
}

func TestEveryCommandNamesTheProgramOnce(t *testing.T) {
	t.Parallel()
	for path, args := range usual {
		args = append([]string(nil), args...)
		for i, arg := range args {
			if arg == "job" {
				args[i] = ""
			}
		}
		got := program.Finish(t, program.NoServer(t), append([]string{path}, args...)...)
		require.NotZero(t, got.Code, path)
		require.Equal(t, "redlatch: invalid argument: the lock's name is empty\n", got.Stderr, path)
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
