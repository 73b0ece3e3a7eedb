package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestEvictTellsWhatItDid(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		for i, owner := range []string{RedissonOwner, "\x1b[2J", RedlatchOwner} {
			Enqueue(t, s, name, owner, time.Duration(i+1)*time.Hour)
		}
		got := Finish(t, s.URL(), "evict", name, RedissonOwner)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`": a waiter was taken out of the queue
  owner  `+RedissonOwner+`
         Redisson, place 1, subscribed no, deadline in (1h0m0s|59m\d\d?(\.\d)?s)
  next   "\\x1b\[2J"
         of unknown kind, told that the lock is free
$`, got.Stdout)
		require.Equal(t, []string{"\x1b[2J", RedlatchOwner}, QueueOf(t, s, name))
		Narrow(t, strings.TrimPrefix(got.Stdout, "lock \""+name+"\""))

		s.Do(t, "HSET", name, SomeOwner, 1)
		got = Finish(t, s.URL(), "evict", name, "\x1b[2J")
		require.Contains(t, got.Stdout, "  owner  \"\\x1b[2J\"\n         of unknown kind, place 1, ")
		require.Contains(t, got.Stdout, "  next   "+RedlatchOwner+
			"\n         Redlatch since "+RedlatchSince+", not told: the lock is not free\n", got.Stderr)
		Narrow(t, strings.TrimPrefix(got.Stdout, "lock \""+name+"\""))
		got = Finish(t, s.URL(), "evict", name, RedlatchOwner)
		require.Contains(t, got.Stdout, "  next   nobody else is queued\n", got.Stderr)
		require.Empty(t, QueueOf(t, s, name))
	})
}

func TestEvictTellsPrograms(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	Enqueue(t, s, name, RedlatchOwner, 0)
	Enqueue(t, s, name, RedissonOwner, time.Hour)
	evict := func(owner string) (told map[string]any) {
		t.Helper()
		got := Finish(t, s.URL(), "evict", "--json", name, owner)
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &told), got.Stderr)
		return told
	}
	require.Equal(t, map[string]any{
		"name": name, "owner": RedlatchOwner, "client": "redlatch", "client_started": "2024-12-21T01:06:31.296Z",
		"position": 1.0, "deadline_in_ms": nil, "subscribed": "no",
		"next": map[string]any{"owner": RedissonOwner, "client": "redisson", "woken": true},
	}, evict(RedlatchOwner))
	told := evict(RedissonOwner)
	require.Nil(t, told["next"])
	require.Contains(t, told, "next")
	require.InDelta(t, time.Hour.Milliseconds(), told["deadline_in_ms"], 30_000)
}

func TestEvictLeavesTheLiving(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	Enqueue(t, s, name, RedissonOwner, time.Hour)
	Listen(t, s, name, RedissonOwner)
	got := Finish(t, s.URL(), "evict", name, RedissonOwner)
	require.Equal(t, 1, got.Code)
	require.Empty(t, got.Stdout)
	OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "somebody listens for "+RedissonOwner)
	require.Contains(t, got.Stderr, "--even-if-alive")
	require.Equal(t, []string{RedissonOwner}, QueueOf(t, s, name))

	got = Finish(t, s.URL(), "evict", "--even-if-alive", name, RedissonOwner)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "subscribed yes")
	require.Empty(t, QueueOf(t, s, name))
}

func TestEvictExitsWithOneWhenItCannot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, user = "some-lock", "evictor"
	s.Do(t, "ACL", "SETUSER", user, "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	blind := "redis://" + user + ":password@" + s.Addr()
	s.Do(t, "SET", codec.QueueKey("no-queue"), "text")
	Enqueue(t, s, name, RedissonOwner, time.Hour)
	for _, c := range []struct{ url, name, owner, says string }{
		{s.URL(), name, RedlatchOwner, RedlatchOwner + " is not in the queue. `redlatch status` shows who is"},
		{s.URL(), "no-queue", RedlatchOwner, "holds a string, and the queue of a fair lock is a list"},
		{blind, name, RedissonOwner, "whether " + RedissonOwner + " is alive cannot be told: "},
		{blind, name, RedissonOwner, "NOPERM"},
		{blind, name, RedissonOwner, "use --even-if-alive"},
		{s.URL(), "", RedlatchOwner, "name"},
		{Nobody(t), name, RedlatchOwner, "connection refused. Start one"},
		{"sesame", name, RedlatchOwner, "not of the form"},
	} {
		got := Finish(t, c.url, "evict", c.name, c.owner)
		require.Equal(t, 1, got.Code, c.says)
		OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, c.says)
		require.NotContains(t, got.Stderr, "sesame")
	}
	require.Equal(t, []string{RedissonOwner}, QueueOf(t, s, name))
	got := Finish(t, blind, "evict", "--even-if-alive", name, RedissonOwner)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "subscribed unknown")
}

// Who looks after a queue may sit at a machine whose clock is wrong.
func TestEvictGoesByTheServersClock(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	name, now := redistest.Key(t), time.Now().Add(10*time.Minute)
	s.SetTime(now)
	for i, owner := range []string{RedissonOwner, RedlatchOwner} {
		s.Do(t, "RPUSH", codec.QueueKey(name), owner)
		s.Do(t, "ZADD", codec.TimeoutKey(name), now.Add(time.Duration(i+1)*5*time.Minute).UnixMilli(), owner)
	}
	got := Finish(t, s.URL(), "evict", name, RedissonOwner)
	require.Equal(t, 0, got.Code, got.Stderr)
	left, err := redis.Int64(s.Do(t, "ZSCORE", codec.TimeoutKey(name), RedlatchOwner), nil)
	require.NoError(t, err)
	require.InDelta(t, now.Add(5*time.Minute+15*time.Second).UnixMilli(), left, 5000)
}
