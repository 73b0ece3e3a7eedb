package hold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

func TestGroupIsOverAsSoonAsAMemberIs(t *testing.T) {
	t.Parallel()
	client := embeddedClient(t)
	var holds []*hold.Hold
	for _, name := range []string{"one", "two"} {
		h, err := rlock.New(client, name).TryLock(t.Context())
		require.NoError(t, err)
		holds = append(holds, h.Internal())
	}
	group := &hold.Group{}
	group.Add(holds[0])
	group.Add(holds[1])
	require.NoError(t, group.Err())
	require.True(t, hold.EndAlone(holds[0]))
	require.ErrorIs(t, group.Err(), redlatch.ErrMaxHold)
	require.ErrorIs(t, holds[1].Err(), redlatch.ErrMaxHold)
}
