package hold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// Freeing the lock before Unlock does would look like a loss.
func TestTheResolverOfAReentryLeavesTheReleaseToUnlock(t *testing.T) {
	t.Parallel()
	client := embeddedClient(t)
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
