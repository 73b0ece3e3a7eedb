package hold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// Between leaving and the release that frees the lock, what settles an earlier
// re-entry may ask. It must not free the lock: the Unlock would find that it was lost.
func TestTheResolverOfAReentryLeavesTheReleaseToUnlock(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.WithInProcess())
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	client, err := redlatch.New(srv.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	l := rlock.New(client, "job")
	h, err := l.TryLock(t.Context())
	require.NoError(t, err)

	free, corrected := hold.LeaveAndCorrect(h.Internal())
	require.True(t, corrected, "it ends the change")

	locked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, locked)
	require.NoError(t, free(time.Second))
}
