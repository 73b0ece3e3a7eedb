package main

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rlock"
)

// unlockWatchdog is the renewed lease of those who live and die here: short, so that
// it is soon known whether it is renewed, and long enough to be looked at afterwards.
const unlockWatchdog = 18 * time.Second

// testUnlock tells the locks of the living from those of a Java process that has died.
func (s *scene) testUnlock(t *testing.T) {
	t.Helper()
	p := startJava(t, javaRelease)
	doomed := s.newJava(t, p, peer.Command{"watchdog": unlockWatchdog.Milliseconds()})
	doomed.lock(t, "plain", "orders:42", 0)
	doomed.lock(t, "plain", "nightly-report", 0)
	_, err := rlock.New(s.client, "books").Lock(t.Context(), rlock.WithWatchdog(unlockWatchdog))
	require.NoError(t, err)
	owners, err := redis.Strings(s.server.Do(t, "HKEYS", "orders:42"), nil)
	require.NoError(t, err)
	require.Len(t, owners, 1)
	dead := []string{"unlock", "--force", "--dead", owners[0]}

	alive := map[string]*program.Process{
		"unlock-alive":      program.Start(t, s.server.URL(), append(dead, "orders:42")...),
		"unlock-alive.json": program.Start(t, s.server.URL(), "unlock", "--force", "--json", "orders:42"),
		"unlock-ours":       program.Start(t, s.server.URL(), "unlock", "--force", "books"),
		"unlock-ours.json":  program.Start(t, s.server.URL(), "unlock", "--force", "--json", "books"),
	}
	for file, p := range alive {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 2, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, "its holder is alive")
		s.show(t, file, got.Stdout)
	}

	p.Halt()
	gone := map[string]*program.Process{
		"unlock-dead":      program.Start(t, s.server.URL(), append(dead, "orders:42")...),
		"unlock-dead.json": program.Start(t, s.server.URL(), append(dead, "--json", "nightly-report")...),
	}
	for file, p := range gone {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 0, got.Code, got.Stderr)
		s.show(t, file, got.Stdout)
	}
	for _, name := range []string{"orders:42", "nightly-report"} {
		require.False(t, program.Exists(t, s.server, name))
		require.Equal(t, 0, program.Finish(t, s.server.URL(), "run", "--try", name, "--", "true").Code)
	}
}
