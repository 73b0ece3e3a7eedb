package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rlock"
)

// testListAndStatus looks at locks of all kinds.
func (f *fixture) testListAndStatus(t *testing.T) {
	t.Helper()
	f.addLocks(t)
	t.Run("list", f.testList)
	t.Run("status", f.testStatus)
}

func (f *fixture) testList(t *testing.T) {
	t.Helper()
	t.Parallel()
	f.checkOutput(t, "list", program.OK(t, f.server.URL(), "list"))

	lines := strings.Split(strings.TrimSpace(program.OK(t, f.server.URL(), "list", "--json")), "\n")
	slices.Sort(lines) // they come as they are found
	f.checkOutput(t, "list.json", strings.Join(lines, "\n")+"\n")
}

func (f *fixture) testStatus(t *testing.T) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"orders:42", "nightly-report", "billing-run", "stuck", "books"} {
		out := program.OK(t, f.server.URL(), "status", name)
		file := "status-" + strings.ReplaceAll(name, ":", "-")
		f.checkOutput(t, file, out)
		got := program.Finish(t, f.server.URL(), "status", "--json", name)
		f.checkOutput(t, file+".json", firstFor.ReplaceAllString(got.Stdout, `"$1": 1000`))
	}
}

func (f *fixture) testRenewals(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "renewed", 0)
	f.java.lock(t, "plain", "fixed", 30*time.Second)
	_, err := rlock.New(f.client, "ours").Lock(t.Context(), rlock.WithWatchdog(6*time.Second))
	require.NoError(t, err)
	fixed := program.Start(t, f.server.URL(), "status", "--for", "15s", "fixed")
	renewed := program.Start(t, f.server.URL(), "status", "--for", "15s", "renewed")
	got := program.Finish(t, f.server.URL(), "status", "--for", "10s", "ours")
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, got.Stdout)
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, renewed.Outcome(2*program.Soon).Stdout)
	require.Regexp(t, `\n  lease  \S+ left, not renewed when due: fixed, or the holder is gone\n`,
		fixed.Outcome(2*program.Soon).Stdout)
}

// testWatch lets both kinds of clients take a lock in turn.
func (f *fixture) testWatch(t *testing.T) {
	t.Helper()
	const name = "nightly-report"
	f.java.lock(t, "plain", name, time.Hour)
	people := program.Start(t, f.server.URL(), "watch", name)
	programs := program.Start(t, f.server.URL(), "watch", "--json", "night*")
	var reported, lines []string
	next := func() {
		reported = append(reported, people.Line())
		lines = append(lines, programs.Line())
	}
	next() // held
	got := make(chan *rlock.Hold, 1)
	go func() {
		hold, err := rlock.New(f.client, name).Lock(t.Context(), rlock.WithLease(time.Hour))
		if err != nil {
			hold = nil
		}
		got <- hold
	}()
	require.Eventually(t, func() bool {
		return slices.Contains(f.server.Channels(t), codec.LockChannel(name))
	}, program.Soon, 10*time.Millisecond)
	f.java.unlock(t, "plain", name)
	hold := <-got
	require.NotNil(t, hold)
	require.Contains(t, program.AwaitPassed(people), "Redlatch 000000aa:")
	require.Contains(t, program.AwaitPassed(programs), hold.Owner().String())
	require.NoError(t, hold.Unlock())
	next() // released
	f.java.lock(t, "plain", name, 3*time.Second)
	next() // taken
	next() // expired
	f.checkOutput(t, "watch", strings.Join(reported, "\n")+"\n")
	f.checkOutput(t, "watch.json", strings.Join(lines, "\n")+"\n")
	require.NoError(t, people.Cmd.Process.Signal(program.Interrupt))
	require.Equal(t, program.Outcome{Code: program.CodeInterrupted, Stdout: "", Stderr: ""}, people.Outcome(program.Soon))
}

// testWatchFair lets a Java thread wait for a fair lock, and get it.
func (f *fixture) testWatchFair(t *testing.T) {
	t.Helper()
	const name = "billing-run"
	f.java.lock(t, "fair", name, 9*time.Minute) // what is left of it is short enough for a line
	people := program.Start(t, f.server.URL(), "watch", "--for", "60s", "bill*")
	programs := program.Start(t, f.server.URL(), "watch", "--for", "60s", "--json", "bill*")
	reported, lines := []string{people.Line()}, []string{programs.Line()} // held
	waiter := f.java.begin(peer.Command{"op": "lock", "kind": "fair", "name": name, "thread": "second", "lease": time.Hour.Milliseconds()})
	reported = append(reported, program.ToEvent(people, "queued")...)
	lines = append(lines, program.ToEvent(programs, "queued")...)
	f.java.unlock(t, "fair", name)
	_, err := waiter.Wait(program.Soon)
	require.NoError(t, err)
	number := numberOf(t, reported[len(reported)-1])
	waiting := fmt.Sprintf("Redisson %s:%s", f.java.id[28:], number)
	reported, lines = append(reported, people.Line()), append(lines, programs.Line()) // woken
	require.Contains(t, reported[len(reported)-1], "woken     "+waiting)
	require.Contains(t, program.AwaitPassed(people), waiting)
	require.Contains(t, program.AwaitPassed(programs), f.java.id+":"+number)
	f.java.do(t, peer.Command{"op": "unlock", "kind": "fair", "name": name, "thread": "second"})
	reported, lines = append(reported, people.Line()), append(lines, programs.Line())
	f.checkOutput(t, "watch-fair", strings.Join(reported, "\n")+"\n")
	f.checkOutput(t, "watch-fair.json", strings.Join(lines, "\n")+"\n")
}

// testRun finds locks of either language held.
func (f *fixture) testRun(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "nightly-report", time.Hour)
	_, err := rlock.New(f.client, "orders:42").Lock(t.Context(), rlock.WithLease(time.Hour))
	require.NoError(t, err)
	said := ""
	for _, name := range []string{"nightly-report", "orders:42"} {
		got := program.Finish(t, f.server.URL(), "run", "--try", name, "--", "echo", "never")
		require.Equal(t, 124, got.Code, got.Stderr)
		require.Empty(t, got.Stdout)
		said += got.Stderr
	}
	program.Golden(t, "run-held", said)
}

// numberOf returns the number of the thread that a line is about.
func numberOf(t *testing.T, line string) string {
	t.Helper()
	m := regexp.MustCompile(`Redisson [0-9a-f]{8}:(\d+)`).FindStringSubmatch(line)
	require.NotNil(t, m, line)
	return m[1]
}

// firstFor finds how long something was looked at.
var firstFor = regexp.MustCompile(`"(first_for_ms|no_subscriber_for_ms)": \d+`)
