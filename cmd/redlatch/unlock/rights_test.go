package unlock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A user that may not read the queue frees the lock as a plain one, which wakes no waiter
// of the queue.
func TestUnlockReportsThatTheQueueWasNotNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "Inspection"})
	listen := func(channel string) redis.Conn {
		t.Helper()
		c := s.Dial(t)
		_, err := c.Do("SUBSCRIBE", channel)
		require.NoError(t, err)
		return c
	}
	plain, fair := listen(codec.LockChannel("app:job")), listen(codec.OwnerChannel("app:job", program.RedissonOwner))
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	for file, flag := range map[string]string{"unlock-untold": "--json=false", "unlock-untold.json": "--json"} {
		s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
		got := program.Finish(t, url, "unlock", "--force", "--even-if-alive", flag, "app:job")
		require.Equal(t, 0, got.Code, got.Stderr)
		program.Fits(t, got.Stdout)
		program.Golden(t, file, got.Stdout)
		_, err := redis.Values(redis.ReceiveWithTimeout(plain, program.Soon))
		require.NoError(t, err)
	}
	s.Do(t, "PUBLISH", codec.OwnerChannel("app:job", program.RedissonOwner), "the first")
	message, err := redis.Strings(redis.ReceiveWithTimeout(fair, program.Soon))
	require.NoError(t, err)
	require.Equal(t, "the first", message[2])
}

// The manual's user for repairs sees everything.
func TestTheManualsOperatorUnlocksAndEvicts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"A user that repairs"})
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
	got := program.Finish(t, url, "unlock", "--force", "--even-if-alive", "--json", "app:job")
	require.Equal(t, 0, got.Code, got.Stderr)
	var reported map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported))
	require.Equal(t, "first_in_queue", reported["notified"])
	require.InDelta(t, 1, reported["queue_length"], 0)
	require.InDelta(t, 0, reported["subscribers"], 0)
	got = program.Finish(t, url, "evict", "app:job", program.RedissonOwner)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Empty(t, strings.TrimSpace(got.Stderr))

	s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
	got = program.Finish(t, url, "unlock", "--force", "--even-if-alive", "app:job")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "  taken  no waiter was notified: no connection of the master is subscribed to\n         the lock's channel\n")
}
