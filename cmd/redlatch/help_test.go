package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/sanitize"
)

func TestVersionAndHelpNeedNoServer(t *testing.T) {
	t.Parallel()
	got := finish(t, nobody(t), "--version")
	require.Equal(t, 0, got.code)
	require.Regexp(t, `^redlatch \S+.* go1\.\d+`, got.stdout)
	for _, name := range []string{"run", "status", "evict", "unlock", "doctor", "bench", "serve", "demo"} {
		got := finish(t, nobody(t), name, "--help")
		require.Equal(t, 0, got.code)
		require.Contains(t, got.stdout, "Examples:\n")
		require.NotContains(t, got.stdout, "sesame", "help shows what REDIS_URL holds")
	}
	got = finish(t, nobody(t), "--help")
	require.NotContains(t, got.stdout, "__", "a hidden command shows")
}

func TestUnknownCommandsExitWithOne(t *testing.T) {
	t.Parallel()
	got := finish(t, nobody(t), "lock-everything")
	require.Equal(t, 1, got.code)
	oneLine(t, got.stderr)
}

func TestHelpOfEveryCommandHasExamplesAndFlagsThatFitATerminal(t *testing.T) {
	t.Parallel()
	for _, cmd := range cli.NewRoot(constructors...).Commands() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		require.NotEmpty(t, cmd.Example, cmd.Name())
		require.NotEmpty(t, cmd.Long, cmd.Name())
		help := finish(t, nobody(t), cmd.Name(), "--help").stdout
		_, flags, found := strings.Cut(help, "\nFlags:\n")
		require.True(t, found, cmd.Name())
		narrow(t, flags)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	narrow(t, finish(t, nobody(t), "--help").stdout)
	for path := range commands(t) {
		narrow(t, finish(t, nobody(t), append(strings.Fields(path), "--help")...).stdout)
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
		got := finish(t, nobody(t), append([]string{path}, args...)...)
		require.NotZero(t, got.code, path)
		require.Equal(t, "redlatch: bad lock name: the name is empty\n", got.stderr, path)
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
