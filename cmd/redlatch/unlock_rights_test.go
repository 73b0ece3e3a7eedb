package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Who may not read the queue frees the lock as a plain one, which the queue hears
// nothing of.
func TestUnlockSaysWhomItHasNotTold(t *testing.T) {
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
	plain, fair := listen(codec.LockChannel("app:job")), listen(codec.OwnerChannel("app:job", redisson))
	queued(t, s, "app:job", redisson, time.Hour)
	for file, flag := range map[string]string{"unlock-untold": "--json=false", "unlock-untold.json": "--json"} {
		s.Do(t, "HSET", "app:job", native, 1)
		got := finish(t, url, "unlock", "--force", "--even-if-alive", flag, "app:job")
		require.Equal(t, 0, got.code, got.stderr)
		fits(t, got.stdout)
		golden(t, file, got.stdout)
		_, err := redis.Values(redis.ReceiveWithTimeout(plain, soon))
		require.NoError(t, err)
	}
	s.Do(t, "PUBLISH", codec.OwnerChannel("app:job", redisson), "the first")
	message, err := redis.Strings(redis.ReceiveWithTimeout(fair, soon))
	require.NoError(t, err)
	require.Equal(t, "the first", message[2])
}

// The manual's user that repairs is told all.
func TestTheManualsOperatorUnlocksAndEvicts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"A user that repairs"})
	queued(t, s, "app:job", redisson, time.Hour)
	s.Do(t, "HSET", "app:job", native, 1)
	got := finish(t, url, "unlock", "--force", "--even-if-alive", "--json", "app:job")
	require.Equal(t, 0, got.code, got.stderr)
	var told map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &told))
	require.Equal(t, "first_in_queue", told["told"])
	require.InDelta(t, 1, told["waiting"], 0)
	got = finish(t, url, "evict", "app:job", redisson)
	require.Equal(t, 0, got.code, got.stderr)
	require.Empty(t, strings.TrimSpace(got.stderr))

	s.Do(t, "HSET", "app:job", native, 1)
	got = finish(t, url, "unlock", "--force", "--even-if-alive", "app:job")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "  taken  those who wait were told\n")
}
