package replication

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// cutAfter is the wait for a disconnected replica.
const cutAfter = 300 * time.Millisecond

// withReplica returns a master and the proxy to it of its replica.
func withReplica(t *testing.T) (*redistest.Server, *redistest.Proxy) {
	t.Helper()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	link := redistest.NewProxy(t, master.Addr())
	replica.Follow(t, link.Addr())
	return master, link
}

func dialling(s *redistest.Server) func(context.Context) (redis.Conn, error) {
	return func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }
}

// A disconnected replica has all earlier writes and does not count: the connection's last write matters.
func TestReplicaCountsOnlyWhenItHasTheWrite(t *testing.T) {
	t.Parallel()
	master, link := withReplica(t)
	b := opened(t, dialling(master))
	require.EqualValues(t, 1, has(t, b, eval("a"), patience, 1))
	require.EqualValues(t, 1, has(t, b, eval("b"), patience, 1), "by its digest")
	master.Do(t, "SCRIPT", "FLUSH")
	require.EqualValues(t, 1, has(t, b, eval("c"), patience, 1))

	link.Blackhole()
	began := time.Now()
	require.EqualValues(t, 1, has(t, b, eval("d"), cutAfter, 0))
	require.GreaterOrEqual(t, time.Since(began), cutAfter)
	has(t, b, set("e"), cutAfter, 0)
	master.KillClients(t, "normal")
	has(t, b, set("f"), cutAfter, 0)
	link.Heal()
	has(t, b, set("g"), patience, 1)
}
