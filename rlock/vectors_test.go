package rlock_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

var names = []struct{ name, prefix, key, channel string }{
	{"orders", "", "orders", "redisson_lock__channel:{orders}"},
	{"orders:42", "", "orders:42", "redisson_lock__channel:{orders:42}"},
	{"{orders}:42", "", "{orders}:42", "redisson_lock__channel:{orders}:42"},
	{"orders:{42}", "", "orders:{42}", "redisson_lock__channel:orders:{42}"},
	{"a{b", "", "a{b", "redisson_lock__channel:a{b"},
	{"a}b", "", "a}b", "redisson_lock__channel:{a}b}"},
	{"{}", "", "{}", "redisson_lock__channel:{}"},
	{" ", "", " ", "redisson_lock__channel:{ }"},
	{"zażółć 锁", "", "zażółć 锁", "redisson_lock__channel:{zażółć 锁}"},
	{"line\r\nbreak\x00", "", "line\r\nbreak\x00", "redisson_lock__channel:{line\r\nbreak\x00}"},
	{"orders", "shop:", "shop:orders", "redisson_lock__channel:{shop:orders}"},
	{"orders", "{shop}:", "{shop}:orders", "redisson_lock__channel:{shop}:orders"},
}

func subscribeAll(t *testing.T, srv redistest.Target) redis.Conn {
	t.Helper()
	conn := srv.Dial(t)
	require.NoError(t, conn.Send("PSUBSCRIBE", "*"))
	require.NoError(t, conn.Flush())
	_, err := conn.Receive()
	require.NoError(t, err)
	return conn
}

// requireMessages checks that exactly these messages were published.
func requireMessages(t *testing.T, srv redistest.Target, conn redis.Conn, channel string, payloads ...string) {
	t.Helper()
	srv.Do(t, "PUBLISH", "the end", "") // comes after all others
	for _, payload := range payloads {
		require.Equal(t, []string{"pmessage", "*", channel, payload}, receive(t, conn))
	}
	require.Equal(t, []string{"pmessage", "*", "the end", ""}, receive(t, conn))
}

func receive(t *testing.T, conn redis.Conn) []string {
	t.Helper()
	got, err := redis.Strings(redis.ReceiveWithTimeout(conn, soon))
	require.NoError(t, err)
	return got
}

func TestLockAndUnlockMatchRedisson(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		t.Parallel()
		conn := subscribeAll(t, srv)
		for _, n := range names {
			client := connect(t, srv.URL(), redlatch.WithNameMapper(redlatch.PrefixMapper(n.prefix)))
			hold := take(t, rlock.New(client, n.name))
			require.Equal(t, "hash", srv.Do(t, "TYPE", n.key))
			require.Equal(t, map[string]string{client.ID().String() + ":1": "1"}, owners(t, srv, n.key))
			requireLeft(t, ttl(t, srv, n.key), 30*time.Second)
			requireMessages(t, srv, conn, "")
			require.NoError(t, hold.Unlock())
			require.EqualValues(t, 0, srv.Do(t, "DBSIZE"), "no key and no latch remain")
			requireMessages(t, srv, conn, n.channel, "0")
		}
	})
}

func TestForceUnlockMatchesRedisson(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		t.Parallel()
		conn := subscribeAll(t, srv)
		for _, n := range names {
			client := connect(t, srv.URL(), redlatch.WithNameMapper(redlatch.PrefixMapper(n.prefix)))
			l := rlock.New(client, n.name)
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.False(t, forced)
			requireMessages(t, srv, conn, "")
			redissonLock(t, srv, n.key)
			forced, err = l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
			require.EqualValues(t, 0, srv.Do(t, "DBSIZE"))
			requireMessages(t, srv, conn, n.channel, "0")
		}
	})
}

// A Java thread that has entered the lock twice.
var (
	javaThread = codec.NewOwner(uuid.MustParse("5d6a1c36-91b0-4a8e-8a43-0e5b8f2d7c90"), 57)
	otherJava  = codec.NewOwner(javaThread.Client(), 58)
)

func redissonLock(t *testing.T, srv redistest.Target, key string) {
	t.Helper()
	srv.Do(t, "HSET", key, "5d6a1c36-91b0-4a8e-8a43-0e5b8f2d7c90:57", "2")
	srv.Do(t, "PEXPIRE", key, 20_000)
}

func TestQueriesAboutRedissonLock(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		t.Parallel()
		l := rlock.New(connect(t, srv.URL()), "job")
		redissonLock(t, srv, "job")
		requireJavaHolds(t, l, 2)
		left, err := l.TTL(t.Context())
		require.NoError(t, err)
		requireLeft(t, left, 20*time.Second)
		_, err = l.TryLock(t.Context())
		checkHeld(t, err)
		var le *redlatch.LockError
		require.ErrorAs(t, err, &le)
		requireLeft(t, le.TTL, 20*time.Second)

		srv.Do(t, "PERSIST", "job")
		left, err = l.TTL(t.Context())
		require.NoError(t, err)
		require.Equal(t, redlatch.NoTTL, left)
		_, err = l.TryLock(t.Context())
		checkHeld(t, err)
		require.ErrorAs(t, err, &le)
		require.Equal(t, redlatch.NoTTL, le.TTL)
		require.ErrorContains(t, err, " never expires)")

		srv.Do(t, "DEL", "job")
		requireJavaHolds(t, l, 0)
		left, err = l.TTL(t.Context())
		require.NoError(t, err)
		require.Zero(t, left)
	})
}

// requireJavaHolds checks the reads about the Java thread and another owner.
func requireJavaHolds(t *testing.T, l *rlock.Lock, count int64) {
	t.Helper()
	isLocked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.Equal(t, count > 0, isLocked)
	for owner, count := range map[codec.Owner]int64{javaThread: count, otherJava: 0} {
		n, err := l.HoldCount(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, count, n)
	}
}
