package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// A terminal may break long lines anywhere. Here, names, owners, leases and labels are as long as
// possible.
func TestOutputFitsTerminal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, strange = "billing-service:eu-west-1:nightly-run:2026-11", "a-program-of-its-own@host-17.example pid 4194304 thread 12"
	holder := codec.NewOwner(program.ClientID, math.MaxInt64).String()
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "billing-service@ip-10-110-120-130.eu-west-1.compute.internal pid 4194304")
	s.Do(t, "HSET", name, holder, 99999)
	s.Do(t, "PEXPIRE", name, (999*time.Hour + 59900*time.Millisecond).Milliseconds())
	program.Subscribe(t, s, codec.LockChannel(name))
	for _, owner := range []string{"71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:9223372036854775807", strange, holder} {
		program.Enqueue(t, s, name, owner, 999*time.Hour+59900*time.Millisecond)
	}
	for _, c := range []struct{ typed, line string }{
		{"", "list"},
		{"", "status " + name},
		{"", "watch --for 1s " + name[:9] + "*"},
		{"", "run --try " + name + " -- true"},
		{"n\n", "unlock --force --even-if-alive " + name},
		{"y\n", "unlock --force --even-if-alive --reason down " + name},
		{"", "evict " + name + " " + program.RedissonOwner},
		{"", "evict --all-dead --for 0s " + name},
		{"", "doctor"},
	} {
		shown := program.OnTerminal(t, s.URL(), c.typed, strings.Fields(c.line)...)
		require.NotEmpty(t, shown)
		program.Narrow(t, shown)
	}
}

func TestTopNeedsTerminalAndProgramWithView(t *testing.T) {
	t.Parallel()
	program.Fails(t, program.NoServer(t), 2, "top needs a terminal, and TERM other than dumb; scripts can use redlatch list --json or redlatch watch --json", "top")
	require.Equal(t, "redlatch: this program was built without top; the releases' archives and\n  packages have it. In a clone, cd cmd/redlatch/full && go build builds one\n  that has it\n",
		program.OnTerminal(t, program.NoServer(t), "", "top"))
}

// printing lists arguments with which a command writes to standard output, for commands that do not
// do so with the arguments in usual or without arguments.
var printing = map[string][]string{
	"exporter": {"--listen=127.0.0.1:0"},
	"serve":    {"--addr=127.0.0.1:0"},
	"ui":       {"--addr=127.0.0.1:0"},
	"evict":    {"queued", program.RedissonOwner},
	"unlock":   {"--force", "free"},

	"context list": {"--json"},
}

// silent lists commands that do not write to standard output.
var silent = []string{"context use", "release", "run", "top"}

func TestLostOutputIsError(t *testing.T) {
	t.Parallel()
	for path := range commands(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := redistest.Mini(t)
			s.Do(t, "HSET", "held", program.SomeOwner, 1)
			program.Enqueue(t, s, "queued", program.RedissonOwner, 0)
			words := strings.Fields(path)
			if testlevel.IsAll() || path == "hold" || path == "list" {
				requireLost(t, toFull(t, s.URL(), append(words, "--help")...))
			}
			args := append(words, usual[path]...)
			if printing[path] != nil {
				args = append(words, printing[path]...)
			}
			if slices.Contains(silent, path) {
				require.Empty(t, program.Finish(t, s.URL(), args...).Stdout)
				return
			}
			requireLost(t, toFull(t, s.URL(), args...))
		})
	}
	requireLost(t, toFull(t, program.NoServer(t), "--version"))
}

// Scripts depend on the exit code for a lock that is held elsewhere.
func TestLostOutputKeepsConflictExitCode(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "held", program.SomeOwner, 1)
	got := toFull(t, s.URL(), "hold", "-s", "--try", "--conflict-exit-code=7", "held")
	require.Equal(t, 7, got.Code, got.Stderr)
	require.Contains(t, got.Stderr, "write /dev/stdout: no space left on device\n")
}

func TestHoldReleasesLockWhenOwnerCannotBePrinted(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	for _, args := range [][]string{{"hold", "free"}, {"hold", "-s", "free"}} {
		got := toFull(t, s.URL(), args...)
		require.Equal(t, 125, got.Code, got.Stderr)
		require.Eventually(t, func() bool { return !program.Exists(t, s, "free") }, program.Soon, program.PollEvery, args)
	}
}

// toFull runs the program with standard output connected to a full device.
func toFull(t *testing.T, url string, args ...string) program.Outcome {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, full.Close()) }()
	return program.FinishTo(t, full, url, args...)
}

func requireLost(t *testing.T, got program.Outcome) {
	t.Helper()
	require.Contains(t, []int{1, 3, 125}, got.Code, got.Stderr) // 3: unlock --force on a free lock
	require.Contains(t, got.Stderr, "write /dev/stdout: no space left on device\n")
}

// A reader that closes the pipe early, such as head, does not cause an error message.
func TestClosedPipeEndsQuietly(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "held", program.SomeOwner, 1)
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"status", "held"}, {"watch", "held"}, {"doctor"}, {"--version"}, {"--help"},
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		got := program.FinishTo(t, w, s.URL(), args...)
		require.NoError(t, w.Close())
		require.Empty(t, got.Stderr, args)
		require.Equal(t, -1, got.Code, "%v: SIGPIPE, which a shell reports as 141", args)
	}
}
