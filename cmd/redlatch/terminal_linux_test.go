package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// A terminal breaks long lines anywhere. Names, owners, leases and labels here are as long as
// possible.
func TestAllOutputFitsATerminal(t *testing.T) {
	testlevel.All(t, "a program for each of 25 command lines")
	t.Parallel()
	s := redistest.Start(t)
	wideFixture(t, s)
	s.Do(t, "ACL", "SETUSER", "guest", "reset", "on", ">password", "+@all", "-pubsub", "-config", "~*", "&*")
	blind := "redis://guest:password@" + s.Addr()
	long := wideName + ":held"
	for _, c := range []struct {
		url, typed string
		args       []string
	}{
		{s.URL(), "", []string{"list"}},
		{s.URL(), "", []string{"list", "no-such-lock-*"}},
		{s.URL(), "", []string{"status", wideName + ":held"}},
		{s.URL(), "", []string{"status", wideName + ":free"}},
		{s.URL(), "", []string{"status", wideName + ":odd"}},
		{blind, "", []string{"status", wideName + ":held"}},
		{blind, "", []string{"status", wideName + ":free"}},
		{s.URL(), "", []string{"watch", "--for", "1s", wideName + "*"}},
		{s.URL(), "", []string{"unlock", long}},
		{s.URL(), "", []string{"unlock", "--force", "--for", "1s", long}},
		{s.URL(), "", []string{"unlock", "--force", "--even-if-alive", wideName + ":odd"}},
		{s.URL(), "n\n", []string{"unlock", "--force", "--even-if-alive", long}},
		{s.URL(), "y\n", []string{"unlock", "--force", "--even-if-alive", "--reason", "its host was shut down", long}},
		{blind, "", []string{"evict", wideName + ":free", wideOwner}},
		{s.URL(), "", []string{"evict", wideName + ":free", program.RedlatchOwner}},
		{s.URL(), "", []string{"evict", wideName + ":free", wideOwner}},
		{s.URL(), "", []string{"evict", "--even-if-alive", wideName + ":free", strangeOwner}},
		{s.URL(), "", []string{"run", "--try", wideName + ":odd", "--", "true"}},
		{s.URL(), "", []string{"doctor"}},
		{blind, "", []string{"doctor"}},
		{program.NoServer(t), "", []string{"status", "a"}},
		{"", "", []string{"list", "--redis", program.NoServer(t)}},
		{s.URL(), "", []string{"--version"}},
		{s.URL(), "", []string{"lock-everything"}},
	} {
		shown := program.OnTerminal(t, c.url, c.typed, c.args...)
		t.Logf("redlatch %s\n%s", strings.Join(c.args, " "), shown)
		require.NotEmpty(t, shown)
		for line := range strings.Lines(shown) {
			if !strings.HasPrefix(line, "    ACL SETUSER ") && !strings.HasPrefix(strings.TrimSpace(line), "`redlatch ") { // commands to be copied
				require.Less(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), cli.Columns, "%v: %s", c.args, line)
			}
		}
	}
}

// Names and owners that are long.
const (
	wideName     = "billing-service:eu-west-1:nightly-run"
	wideOwner    = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:9223372036854775807"
	strangeOwner = "a-program-of-its-own@host-17.example pid 4194304 thread 12"
)

// wideFixture makes locks with owners, leases, deadlines and labels that are long.
func wideFixture(t *testing.T, s *redistest.Server) {
	t.Helper()
	holder := redlatch.NewOwner(program.ClientID, 9223372036854775807)
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "billing-service@ip-10-110-120-130.eu-west-1.compute.internal pid 4194304")
	held := wideName + ":held"
	s.Do(t, "HSET", held, holder.String(), 99999)
	s.Do(t, "PEXPIRE", held, (999*time.Hour + 59*time.Minute + 59900*time.Millisecond).Milliseconds())
	program.Subscribe(t, s, codec.LockChannel(held))
	for _, name := range []string{held, wideName + ":free"} {
		for _, owner := range []string{wideOwner, strangeOwner, holder.String(), redlatch.NewOwner(uuid.New(), 1).String()} {
			program.Enqueue(t, s, name, owner, 999*time.Hour+59*time.Minute+59900*time.Millisecond)
		}
	}
	s.Do(t, "HSET", wideName+":odd", strangeOwner, "as often as it likes", "mode", "none", wideOwner, 1)
}

// printing are arguments with which a command writes to standard output, where those in usual do
// not do, and where no arguments do not.
var printing = map[string][]string{
	"exporter": {"--listen=127.0.0.1:0"},
	"serve":    {"--addr=127.0.0.1:0"},
	"ui":       {"--addr=127.0.0.1:0"},
	"evict":    {"queued", program.RedissonOwner},
	"unlock":   {"--force", "free"},
}

// silent are commands that write nothing to standard output.
var silent = []string{"release", "run"}

func TestLostOutputIsAnError(t *testing.T) {
	t.Parallel()
	for path := range commands(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := redistest.Mini(t)
			s.Do(t, "HSET", "held", program.SomeOwner, 1)
			program.Enqueue(t, s, "queued", program.RedissonOwner, 0)
			words := strings.Fields(path)
			requireLost(t, toFull(t, s.URL(), append(words, "--help")...))
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

// Scripts depend on the code of a lock that is held elsewhere.
func TestLostOutputKeepsTheConflictExitCode(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "held", program.SomeOwner, 1)
	got := toFull(t, s.URL(), "hold", "-s", "--try", "--conflict-exit-code=7", "held")
	require.Equal(t, 7, got.Code, got.Stderr)
	require.Contains(t, got.Stderr, "write /dev/stdout: no space left on device\n")
}

func TestHoldFreesTheLockWhenItsOwnerCannotBePrinted(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	for _, args := range [][]string{{"hold", "free"}, {"hold", "-s", "free"}} {
		got := toFull(t, s.URL(), args...)
		require.Equal(t, 125, got.Code, got.Stderr)
		require.Eventually(t, func() bool { return !program.Exists(t, s, "free") }, program.Soon, program.PollEvery, args)
	}
}

// toFull runs the program with its standard output on a device that is full.
func toFull(t *testing.T, url string, args ...string) program.Outcome {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, full.Close()) }()
	return program.FinishTo(t, full, url, args...)
}

func requireLost(t *testing.T, got program.Outcome) {
	t.Helper()
	require.Contains(t, []int{1, 3, 125}, got.Code, got.Stderr) // 3: unlock --force of a free lock
	require.Contains(t, got.Stderr, "write /dev/stdout: no space left on device\n")
}

// A reader that has read enough, such as head, is not an error to be reported.
func TestClosedPipeEndsQuietly(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.Do(t, "HSET", "held", program.SomeOwner, 1)
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"list", "--watch"}, {"status", "held"}, {"watch", "held"}, {"doctor"}, {"version"}, {"--help"},
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
