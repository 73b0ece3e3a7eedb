package redistest

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestWhatIsPublishedOnAMasterReachesItsReplica(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]Option{nil, {WithPassword("secret")}} {
		master := Start(t, opts...)
		require.Empty(t, master.Replicas(t))
		first, second := StartReplica(t, master, opts...), StartReplica(t, master, opts...)
		require.ElementsMatch(t, []string{first.Addr(), second.Addr()}, master.Replicas(t))

		sub := redis.PubSubConn{Conn: first.Dial(t)}
		require.NoError(t, sub.Subscribe("channel"))
		require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(10*time.Second))
		require.EqualValues(t, 0, master.Do(t, "PUBLISH", "channel", "hello"), "no listener on the master itself")
		require.Equal(t, redis.Message{Channel: "channel", Data: []byte("hello")}, sub.ReceiveWithTimeout(10*time.Second))

		second.Kill()
		require.Eventually(t, func() bool { return len(master.Replicas(t)) == 1 }, 10*time.Second, 5*time.Millisecond)
	}
}
