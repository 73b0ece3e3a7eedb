package rlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
)

// Between leaving and the release that frees the lock, what settles an earlier
// re-entry may ask. It must not free the lock: the Unlock would find that it was lost.
func TestWhatSettlesAReentryLeavesTheFreeingToUnlock(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.WithInProcess())
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	client, err := redlatch.New(srv.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	l := New(client, "job")
	hold, err := l.TryLock(t.Context())
	require.NoError(t, err)

	owner := hold.tenure
	require.True(t, owner.takeFor(time.Second))
	require.Zero(t, owner.leave(hold)) // as Unlock does first
	owner.arrive(nil)
	require.True(t, owner.takeFor(time.Second), "it gives the turn back")
	owner.give()

	locked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, locked)
	require.NoError(t, owner.free(time.Second))
}
