package main

import (
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redistest"
)

func TestUnlockJudgesTheLocksOfRedisson(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a server and a Java machine")
	}
	p := startJava(t)
	s := redistest.Start(t)
	java := newJavaClient(t, p, s)
	java.lock(t, "plain", "orders:42", 0)
	owners, err := redis.Strings(s.Do(t, "HKEYS", "orders:42"), nil)
	require.NoError(t, err)
	require.Len(t, owners, 1)
	require.Equal(t, 124, finish(t, s.URL(), "run", "--try", "orders:42", "--", "echo", "never").code)

	got := finish(t, s.URL(), "unlock", "--force", "--dead", owners[0], "orders:42")
	require.Equal(t, 2, got.code, got.stderr)
	require.Contains(t, got.stderr, "its holder is alive")
	fits(t, got.stdout)
	golden(t, "unlock-alive", got.stdout, java.id)
	got = finish(t, s.URL(), "unlock", "--force", "--json", "orders:42")
	require.Equal(t, 2, got.code, got.stderr)
	golden(t, "unlock-alive.json", got.stdout, java.id)

	p.Halt()
	got = finish(t, s.URL(), "unlock", "--force", "--dead", owners[0], "orders:42")
	require.Equal(t, 0, got.code, got.stderr)
	fits(t, got.stdout)
	golden(t, "unlock-dead", got.stdout, java.id)
	require.False(t, exists(t, s, "orders:42"))
	require.Equal(t, 0, finish(t, s.URL(), "run", "--try", "orders:42", "--", "true").code)
}
