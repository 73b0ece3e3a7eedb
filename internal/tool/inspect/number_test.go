package inspect

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func addNumbers(t *testing.T, s redistest.Target) {
	t.Helper()
	s.Do(t, "SET", "pool", 3)
	s.Do(t, "ZADD", protocol.PermitsKey("pool"), 1, "0123456789abcdef", protocol.PermitForever, "fedcba9876543210")
	s.Do(t, "SET", "{eu}pool", -1, "PX", time.Hour.Milliseconds())
	s.Do(t, "ZADD", protocol.PermitsKey("{eu}pool"), protocol.PermitForever, "fedcba9876543210")
	s.Do(t, "SET", "idle", 5)
	s.Do(t, "SET", "text", "12 monkeys")
	s.Do(t, "ZADD", protocol.PermitsKey("text"), 1, "0123456789abcdef")
	s.Do(t, "SET", "other", 7)
	s.Do(t, "ZADD", protocol.PermitsKey("other"), 1, "an id of another length")
	s.Do(t, "ZADD", protocol.PermitsKey("gone"), 1, "0123456789abcdef")
	s.Do(t, "SET", protocol.TokenKey("plain"), 12)
	s.Do(t, "SET", protocol.LatchKey("plain", "0123"), 1)
	s.Do(t, "SET", protocol.HoldKey("rw", java, 1), 1)
}

func TestScanFindsUsedSemaphores(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		addNumbers(t, s)
		require.Empty(t, found(t, s, Request{}), "they are not requested")
		s.Do(t, "HSET", "plain", java, 1)
		all := found(t, s, Request{Permits: true})
		require.Equal(t, []string{"plain", "pool", "{eu}pool"}, slices.Sorted(maps.Keys(all)))
		require.Equal(t, &Lock{Name: "pool", Kind: Semaphore, TTL: redlatch.NoTTL, Number: &Number{Available: 3, Taken: 2}}, all["pool"])
		requireLeft(t, s, "{eu}pool", time.Hour, all["{eu}pool"].TTL)
		require.Equal(t, &Number{Available: -1, Taken: 1}, all["{eu}pool"].Number)
		require.Equal(t, []string{"{eu}pool"}, slices.Sorted(maps.Keys(found(t, s, Request{Permits: true, Pattern: "{eu}*"}))))
	})
}

func TestScanFindsAllNumbersWhenRequested(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addNumbers(t, s)
	s.Do(t, "HSET", "plain", java, 1)
	conn := s.Dial(t)
	for _, channel := range []string{protocol.SemaphoreChannel("idle"), protocol.CountDownChannel("other")} {
		require.NoError(t, conn.Send("SUBSCRIBE", channel))
		require.NoError(t, conn.Flush())
		_, err := redis.ReceiveWithTimeout(conn, time.Minute)
		require.NoError(t, err)
	}
	s.Do(t, "DEL", protocol.PermitsKey("other"))
	s.Do(t, "SET", "plain-counter", 0)
	all := found(t, s, Request{Numbers: true})
	require.Equal(t, []string{"idle", "other", "plain-counter", "pool", "{eu}pool"}, slices.Sorted(maps.Keys(all)))
	require.Equal(t, Semaphore, all["idle"].Kind)
	require.Equal(t, &Number{Available: 5, PermitWaiters: 1}, all["idle"].Number)
	require.Equal(t, Latch, all["other"].Kind)
	require.Equal(t, &Number{Available: 7, LatchWaiters: 1}, all["other"].Number)
	require.Equal(t, Counter, all["plain-counter"].Kind)
	require.Equal(t, Semaphore, all["pool"].Kind)
}
