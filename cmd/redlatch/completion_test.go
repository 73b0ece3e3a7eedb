package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
)

// The directives by which a shell does or does not offer files.
const (
	offersFiles   = ":0\n"
	offersNothing = ":4\n"
)

// offered returns what the shell would offer for the last of the words.
func offered(t *testing.T, words ...string) string {
	t.Helper()
	var out strings.Builder
	root := cli.NewRoot(constructors...)
	root.SetArgs(append([]string{"__complete"}, words...))
	root.SetOut(&out)
	root.SetErr(&strings.Builder{})
	require.NoError(t, root.Execute())
	return out.String()
}

// Files are offered where one is meant, and nowhere else.
func TestShellsOfferFilesForTheFlagsThatNameOne(t *testing.T) {
	t.Parallel()
	files := []string{"password-file", "tls-ca", "tls-cert", "tls-key", "audit-file", "auth"}
	values := map[string]string{
		"on-lost":        "term\nkill\nignore\n",
		"on-lost-signal": "TERM\nINT\nHUP\nUSR1\nUSR2\nKILL\n",
		"kind":           "plain\nfair\nfenced\nfair-fenced\nreadwrite\n",
		"sort":           "name\nlease\nqueue\n",
		"need":           "plain\nbraces\nfair\ntokens\n",
		"allow":          "evict\nunlock\n",
	}
	for path, c := range commands(t) {
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
}

func TestShellsOfferNoFilesForNames(t *testing.T) {
	t.Parallel()
	for path := range commands(t) {
		words := append(strings.Fields(path), "")
		if strings.HasPrefix(path, "completion") {
			continue // shells
		}
		require.Equal(t, offersNothing, offered(t, words...), path)
	}
	require.Equal(t, offersNothing, offered(t, "evict", "job", ""))
}

// After the dashes there is a command of the user's, with arguments of its own.
func TestShellsOfferRunWhatTheyOfferAnyCommand(t *testing.T) {
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
		got := program.Finish(t, program.NoServer(t), append([]string{"__complete"}, c.words...)...)
		require.Equal(t, 0, got.Code)
		require.Equal(t, c.want, got.Stdout, "%q", c.words)
	}
}

func TestCompletionIsThereForTheCommonShells(t *testing.T) {
	t.Parallel()
	for shell, says := range map[string]string{"bash": "__start_redlatch", "zsh": "#compdef redlatch", "fish": "complete -c redlatch"} {
		got := program.Finish(t, program.NoServer(t), "completion", shell)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.Contains(t, got.Stdout, says)
	}
	got := program.Finish(t, program.NoServer(t), "__complete", "do")
	require.Contains(t, got.Stdout, "doctor\tExamine a server")
	got = program.Finish(t, program.NoServer(t), "__complete", "run", "--on")
	require.Contains(t, got.Stdout, "--on-lost\t")
	got = program.Finish(t, program.NoServer(t), "__complete", "run", "--on-lost", "")
	require.Contains(t, got.Stdout, "term\nkill\nignore\n")
}
