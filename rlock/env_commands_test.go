package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The client waits for no replica and does not ask what kind of server it is: nothing
// depends on a command that a managed Redis may not have.
func TestU41NeitherReplicasAreWaitedForNorIsTheServerAskedWhatItIs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redistest.StartReplica(t, s) // a replica that WAIT would wait for
	s.Do(t, "CONFIG", "RESETSTAT")
	one, other := connect(t, s.URL()), connect(t, s.URL())
	hold := take(t, rlock.New(one, "job"), rlock.WithWatchdog(shortLease))
	w := await(t.Context(), rlock.New(other, "job"))
	listening(t, s, "redisson_lock__channel:{job}")
	inner, err := rlock.New(one, "job").Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	awaitRenewal(t, s, "job")
	require.NoError(t, inner.Unlock())
	require.NoError(t, hold.Unlock())
	next := w.acquired(t, soon)
	owner, err := next.HandOver()
	require.NoError(t, err)
	require.NoError(t, rlock.New(one, "job").UnlockAs(t.Context(), owner))
	_, err = admin.Inspect(t.Context(), rlock.New(one, "job"))
	require.NoError(t, err)

	stats := s.CommandStats(t) // which asks INFO itself, afterwards
	require.Positive(t, stats["evalsha"], "the statistics were not read: the check itself is broken")
	for _, command := range []string{"wait", "waitaof", "info", "cluster|info", "cluster|nodes", "config|get", "command"} {
		require.Zero(t, stats[command], command)
	}
}
