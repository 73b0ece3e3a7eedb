package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The first caller that waits needs the connection for subscriptions. That there is no room
// for it just now is no reason to stop waiting.
func TestAWaiterWaitsForRoomForItsConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, server.URL(), noPoll())
	require.NoError(t, take(t, rlock.New(client, "other")).Unlock())
	holdByHand(t, server, "job", forever)
	server.Do(t, "CONFIG", "SET", "maxclients", 2)
	waiting := await(t.Context(), rlock.New(client, "job"))
	time.Sleep(2 * time.Second)
	server.Do(t, "CONFIG", "SET", "maxclients", 100)
	freeByHand(t, server, "job")
	require.NoError(t, waiting.acquired(t, soon).Unlock())
}
