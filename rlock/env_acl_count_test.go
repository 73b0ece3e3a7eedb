package rlock_test

import (
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// listens subscribes to a channel on a server until the test ends.
func listens(t *testing.T, s *redistest.Server, channel string) {
	t.Helper()
	sub := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, sub.Subscribe(channel))
	require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(soon))
}

// What the manual calls the rights to count is enough for it, and each of them is
// needed, on the master and on its replicas.
func TestU42SubscribersAreCountedWithTheRightsOfTheManual(t *testing.T) {
	t.Parallel()
	require.Equal(t, []any{"SETUSER", "locks", "+pubsub|numsub", "+role"}, redistest.Rights(t, "Who listens"))
	for _, c := range []struct {
		master, replica []any
		counted         bool
	}{
		{[]any{"+pubsub|numsub", "+role"}, []any{"+pubsub|numsub"}, true},
		{[]any{"+pubsub|numsub", "+role", "-ping"}, []any{"+pubsub|numsub", "-ping"}, true},
		{[]any{"+pubsub|numsub"}, []any{"+pubsub|numsub"}, false},
		{[]any{"+role"}, []any{"+pubsub|numsub"}, false},
		{[]any{"+pubsub|numsub", "+role"}, nil, false},
	} {
		s, url := leastPrivileged(t, c.master...)
		replica := redistest.StartReplica(t, s)
		replica.GiveRights(t, documented, c.replica...)
		channel := codec.LockChannel(aclNames(t)[0])
		listens(t, replica, channel)
		counts, err := engine.EngineOf(connect(t, url)).Listeners(t.Context(), channel)
		if !c.counted {
			require.True(t, transport.IsCode(err, "NOPERM"), "%v: %v", c, err)
			continue
		}
		require.NoError(t, err, "%v", c)
		require.Equal(t, []int64{1}, counts)
	}
}
