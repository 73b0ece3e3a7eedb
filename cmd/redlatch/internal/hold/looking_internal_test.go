package hold

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// When the time to wait runs out on a replica, the last attempt may not have been sent yet.
func TestAWaitThatEndsOnAReplicaSaysSo(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	for url, says := range map[string]string{replica.URL(): "is a replica of " + master.Addr(), master.URL(): "not sent"} {
		srv, err := connect.New(connect.Settings{Address: url})
		require.NoError(t, err)
		// Long enough for the first look, and shorter than lookAfter and replicaAfter together.
		ctx, cancel := context.WithTimeout(t.Context(), replicaAfter)
		defer cancel()
		err = (&lockFlags{}).whileLooking(ctx, srv, "job", func(ctx context.Context) error {
			<-ctx.Done()
			return redlatch.ErrNotSent
		})
		require.ErrorContains(t, err, says)
	}
}
