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
	"github.com/redlatch/redlatch/internal/compat/peer"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// One Java process is enough for all who look at its locks.
func TestLocksOfRedissonAndOfRedlatchAreShown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a server and a Java machine")
	}
	p := startJava(t)
	newJava := func(t *testing.T, s redistest.Target) *javaClient {
		t.Helper()
		return newJavaClient(t, p, s)
	}
	t.Run("list and status", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, newJava)
		s.furnish(t)
		t.Run("list", s.testList)
		t.Run("status", s.testStatus)
	})
	t.Run("renewals", func(t *testing.T) {
		t.Parallel()
		newScene(t, newJava).testRenewals(t)
	})
	t.Run("watch", func(t *testing.T) {
		t.Parallel()
		newScene(t, newJava).testWatch(t)
	})
	t.Run("watch a fair lock", func(t *testing.T) {
		t.Parallel()
		newScene(t, newJava).testWatchFair(t)
	})
}

func (s *scene) testList(t *testing.T) {
	t.Helper()
	t.Parallel()
	got := finish(t, s.server.URL(), "list")
	require.Equal(t, 0, got.code, got.stderr)
	require.Empty(t, got.stderr)
	fits(t, got.stdout)
	golden(t, "list", got.stdout, s.java.id)

	got = finish(t, s.server.URL(), "list", "--json")
	require.Equal(t, 0, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	slices.Sort(lines) // they come as they are found
	golden(t, "list.json", strings.Join(lines, "\n")+"\n", s.java.id)
}

func (s *scene) testStatus(t *testing.T) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"orders:42", "nightly-report", "billing-run", "stuck", "books"} {
		got := finish(t, s.server.URL(), "status", name)
		require.Equal(t, 0, got.code, got.stderr)
		fits(t, got.stdout)
		file := "status-" + strings.ReplaceAll(name, ":", "-")
		golden(t, file, got.stdout, s.java.id)
		got = finish(t, s.server.URL(), "status", "--json", name)
		golden(t, file+".json", firstFor.ReplaceAllString(got.stdout, `"$1": 1000`), s.java.id)
	}
}

func (s *scene) testRenewals(t *testing.T) {
	t.Helper()
	s.java.lock(t, "plain", "renewed", 0)
	s.java.lock(t, "plain", "fixed", 30*time.Second)
	_, err := rlock.New(s.client, "ours").Lock(t.Context(), rlock.WithWatchdog(6*time.Second))
	require.NoError(t, err)
	fixed := start(t, s.server.URL(), "status", "--for", "15s", "fixed")
	renewed := start(t, s.server.URL(), "status", "--for", "15s", "renewed")
	got := finish(t, s.server.URL(), "status", "--for", "10s", "ours")
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, got.stdout)
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, renewed.outcome(2*soon).stdout)
	require.Regexp(t, `\n  lease  \S+ left, not renewed when that was due: fixed, or the holder is gone\n`,
		fixed.outcome(2*soon).stdout)
}

// testWatch lets both kinds of clients take a lock in turn.
func (s *scene) testWatch(t *testing.T) {
	t.Helper()
	const name = "nightly-report"
	s.java.lock(t, "plain", name, time.Hour)
	people := start(t, s.server.URL(), "watch", name)
	programs := start(t, s.server.URL(), "watch", "--json", "night*")
	var told, lines []string
	next := func() {
		told = append(told, people.line())
		lines = append(lines, programs.line())
	}
	next() // held
	got := make(chan *rlock.Hold, 1)
	go func() {
		hold, err := rlock.New(s.client, name).Lock(t.Context(), rlock.WithLease(time.Hour))
		if err != nil {
			hold = nil
		}
		got <- hold
	}()
	require.Eventually(t, func() bool {
		return slices.Contains(s.server.Channels(t), codec.LockChannel(name))
	}, soon, 10*time.Millisecond)
	s.java.unlock(t, "plain", name)
	hold := <-got
	require.NotNil(t, hold)
	require.Contains(t, handedOver(people), "Redlatch 000000aa:")
	require.Contains(t, handedOver(programs), hold.Owner().String())
	require.NoError(t, hold.Unlock())
	next() // released
	s.java.lock(t, "plain", name, 3*time.Second)
	next() // taken
	next() // expired
	text := strings.Join(told, "\n") + "\n"
	fits(t, text)
	golden(t, "watch", text, s.java.id)
	golden(t, "watch.json", strings.Join(lines, "\n")+"\n", s.java.id)
	require.NoError(t, people.cmd.Process.Signal(interrupt))
	require.Equal(t, outcome{codeInterrupted, "", ""}, people.outcome(soon))
}

// testWatchFair lets a Java thread wait for a fair lock, and get it.
func (s *scene) testWatchFair(t *testing.T) {
	t.Helper()
	const name = "billing-run"
	s.java.lock(t, "fair", name, time.Hour)
	p := start(t, s.server.URL(), "watch", "--for", "60s", "bill*")
	lines := []string{p.line()} // held
	waiter := s.java.begin(peer.Command{"op": "lock", "kind": "fair", "name": name, "thread": "second", "lease": time.Hour.Milliseconds()})
	lines = append(lines, toEvent(p, "queued")...)
	s.java.unlock(t, "fair", name)
	_, err := waiter.Wait(soon)
	require.NoError(t, err)
	waiting := fmt.Sprintf("Redisson %s:%s", s.java.id[28:], numberOf(t, lines[len(lines)-1]))
	woken := p.line()
	require.Contains(t, woken, "woken     "+waiting)
	require.Contains(t, handedOver(p), waiting)
	s.java.do(t, peer.Command{"op": "unlock", "kind": "fair", "name": name, "thread": "second"})
	lines = append(lines, woken, p.line())
	text := strings.Join(lines, "\n") + "\n"
	fits(t, text)
	golden(t, "watch-fair", text, s.java.id)
}

// numberOf returns the number of the thread that a line is about.
func numberOf(t *testing.T, line string) string {
	t.Helper()
	m := regexp.MustCompile(`Redisson [0-9a-f]{8}:(\d+)`).FindStringSubmatch(line)
	require.NotNil(t, m, line)
	return m[1]
}
