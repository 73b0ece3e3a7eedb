package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// usageCode is the exit code of a command for what is typed wrong: redlatch run's other codes are
// those of its COMMAND.
func usageCode(path string) int {
	switch path {
	case "run", "hold", "release":
		return 125
	}
	return cli.CodeUsage
}

// meaningless are flags of each command whose values can be read, and mean nothing.
var meaningless = map[string][]string{
	"demo":     {"--duration=1ns", "--duration=2h", "--fair --duration=1ms", "--redis=nonsense", "--redis=redis-cluster://h"},
	"doctor":   {"--need=nonsense", "--redis=nonsense"},
	"evict":    {"--for=1s", "--all-dead --even-if-alive", "--base64", "--password-file=/nonsense", "--redis=nonsense"},
	"exporter": {"--every=1ns", "--listen=nonsense", "--match=nonsense", "--redis=nonsense"},
	"hold":     {"--try --wait=1s", "--lease=1ns", "--permits=nonsense", "--for-pid=0", "--on-lost-signal=nonsense", "--redis=nonsense"},
	"list":     {"--every=1s", "--kind=nonsense", "--sort=nonsense", "--limit=-1", "--watch --json", "--redis=nonsense"},
	"release":  {"--wait=1ns"},
	"run":      {"--try --wait=1s", "--lease=1ns", "--on-lost=nonsense", "--permits=nonsense", "--redis=nonsense", "--tls-ca=/nonsense"},
	"serve":    {"--addr=nonsense"},
	"status":   {"--for=0s", "--waiters=-1", "--base64", "--tls-ca=/nonsense", "--redis=redis://h/orders"},
	"ui":       {"--addr=nonsense", "--every=1ns", "--addr=0.0.0.0:0", "--auth=/nonsense", "--redis=nonsense"},
	"unlock":   {"--for=0s", "--dead=a:1 --even-if-alive", "--force=false", "--base64", "--redis=nonsense"},
	"watch":    {"--for=0s", "--base64", "--redis=nonsense"},
	"version":  nil,
}

// What is typed wrong has one exit code in all commands, and nothing is done.
func TestEveryCommandHasOneExitCodeForWhatIsTypedWrong(t *testing.T) {
	t.Parallel()
	url := program.NoServer(t)
	for path := range commands(t) {
		require.Contains(t, meaningless, path, "say which of its flags can mean nothing")
		lines := [][]string{
			append([]string{path, "--no-such-flag"}, usual[path]...),
			append([]string{path, "--tls=maybe"}, usual[path]...),
			{path, "a", "b", "c", "d", "e"},
		}
		if usual[path] != nil {
			lines = append(lines, []string{path})
		}
		for _, flags := range meaningless[path] {
			args := append(append([]string{path}, usual[path]...), strings.Fields(flags)...)
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

// The commands that come with each program refuse what they do not know, too.
func TestHelpAndCompletionRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"help stauts":       "redlatch: there is no command stauts, but status. `redlatch --help` lists the commands\n",
		"completion basch":  "redlatch: there is no completion for basch. Usage: redlatch completion bash|fish|powershell|zsh\n",
		"completion bash x": "redlatch: there are too many arguments: x. Usage: redlatch completion bash; `redlatch completion bash --help` tells more\n",
		"--tls":             "",
		"help status":       "",
		"completion":        "",
		"completion bash":   "",
	} {
		got := program.Finish(t, program.NoServer(t), strings.Fields(line)...)
		require.Equal(t, says, got.Stderr, line)
		require.Equal(t, says != "", got.Code == cli.CodeUsage, line)
		require.Equal(t, says == "", got.Code == 0 && got.Stdout != "", line)
	}
}

func TestNamesThatAreEmptyAreTypedWrong(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"status", "watch", "unlock", "evict", "run"} {
		args := append([]string{path}, usual[path]...)
		for i := range args {
			if args[i] == "job" {
				args[i] = ""
			}
		}
		require.Equal(t, usageCode(path), program.Finish(t, program.NoServer(t), args...).Code, path)
	}
}

// What fails for another reason has another code.
func TestAServerThatIsAwayIsNoUsageError(t *testing.T) {
	t.Parallel()
	for path, args := range map[string][]string{"status": {"job"}, "list": nil, "watch": {"job"}} {
		require.Equal(t, cli.CodeFailed, program.Finish(t, program.NoServer(t), append([]string{path}, args...)...).Code, path)
	}
}
