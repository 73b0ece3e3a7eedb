package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// unlockWatchdog is the renewed lease of the holders in these tests: short, so that a
// renewal is soon seen, and long enough for the looks after it.
const unlockWatchdog = 18 * time.Second

// testUnlock distinguishes locks of live holders from those of a Java process that has
// died.
func (f *fixture) testUnlock(t *testing.T) {
	t.Helper()
	p := startJava(t, javaRelease)
	doomed := f.newJava(t, p, peer.Command{"watchdog": unlockWatchdog.Milliseconds()})
	doomed.lock(t, "plain", "orders:42", 0)
	doomed.lock(t, "plain", "nightly-report", 0)
	_, err := rlock.New(f.client, "books").Lock(t.Context(), rlock.WithWatchdog(unlockWatchdog))
	require.NoError(t, err)
	owners, err := redis.Strings(f.server.Do(t, "HKEYS", "orders:42"), nil)
	require.NoError(t, err)
	require.Len(t, owners, 1)
	dead := []string{"unlock", "--force", "--dead", owners[0]}

	alive := map[string]*program.Process{
		"unlock-alive":      program.Start(t, f.server.URL(), append(dead, "orders:42")...),
		"unlock-alive.json": program.Start(t, f.server.URL(), "unlock", "--force", "--json", "orders:42"),
		"unlock-ours":       program.Start(t, f.server.URL(), "unlock", "--force", "books"),
		"unlock-ours.json":  program.Start(t, f.server.URL(), "unlock", "--force", "--json", "books"),
	}
	for file, p := range alive {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 2, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, "its holder is alive")
		f.checkOutput(t, file, got.Stdout)
	}

	doomed.lock(t, "read", "ledger", time.Hour)
	p.Halt()
	f.takesDeadReader(t, doomed.id, "ledger")
	gone := map[string]*program.Process{
		"unlock-dead":      program.Start(t, f.server.URL(), append(dead, "orders:42")...),
		"unlock-dead.json": program.Start(t, f.server.URL(), append(dead, "--json", "nightly-report")...),
	}
	for file, p := range gone {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 0, got.Code, got.Stderr)
		f.checkOutput(t, file, got.Stdout)
	}
	for _, name := range []string{"orders:42", "nightly-report"} {
		require.False(t, program.Exists(t, f.server, name))
		require.Equal(t, 0, program.Finish(t, f.server.URL(), "run", "--try", name, "--", "true").Code)
	}
}

// takesDeadReader takes a lock from the reader of a Java process that has died. The readers of
// another Java process and of Redlatch keep it, and when they have unlocked it Java's writer gets it.
func (f *fixture) takesDeadReader(t *testing.T, id, name string) {
	t.Helper()
	keys, err := redis.Strings(f.server.Do(t, "HKEYS", name), nil)
	require.NoError(t, err)
	dead := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, id) })
	require.GreaterOrEqual(t, dead, 0)
	f.java.lock(t, "read", name, 0)
	ours, err := rreadwritelock.New(f.client, name).Read().Lock(t.Context())
	require.NoError(t, err)
	writer := f.java.begin(peer.Command{"op": "lock", "kind": "write", "name": name, "thread": "writer"})
	require.Eventually(t, func() bool {
		n, _ := f.server.Do(t, "PUBSUB", "NUMSUB", codec.ReadWriteChannel(name)).([]any)
		return len(n) == 2 && n[1] == int64(1)
	}, program.Soon, 10*time.Millisecond)

	require.Contains(t, program.OK(t, f.server.URL(), "unlock", "--force", "--for", "10ms", "--dead", keys[dead], name), "was taken from 1 of its 3 holders\n")
	left, err := redis.Strings(f.server.Do(t, "HKEYS", name), nil)
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.NotContains(t, left, keys[dead])
	require.NoError(t, ours.Unlock())
	f.java.unlock(t, "read", name)
	_, err = writer.Wait(program.Soon)
	require.NoError(t, err)
}
