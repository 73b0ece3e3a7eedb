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
		for i, owner := range []string{redisson, "\x1b[2J", native} {
			queued(t, s, name, owner, time.Duration(i+1)*time.Hour)
		}
		got := finish(t, s.URL(), "evict", name, redisson)
		require.Equal(t, 0, got.code, got.stderr)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`": a waiter was taken out of the queue
  owner  `+redisson+`
         Redisson, place 1, subscribed no, deadline in (1h0m0s|59m\d\d?(\.\d)?s)
  next   "\\x1b\[2J"
         of unknown kind, told that the lock is free
$`, got.stdout)
		require.Equal(t, []string{"\x1b[2J", native}, queueOf(t, s, name))
		narrow(t, strings.TrimPrefix(got.stdout, "lock \""+name+"\""))

		s.Do(t, "HSET", name, someOwner, 1)
		got = finish(t, s.URL(), "evict", name, "\x1b[2J")
		require.Contains(t, got.stdout, "  owner  \"\\x1b[2J\"\n         of unknown kind, place 1, ")
		require.Contains(t, got.stdout, "  next   "+native+
			"\n         Redlatch since "+since+", not told: the lock is not free\n", got.stderr)
		narrow(t, strings.TrimPrefix(got.stdout, "lock \""+name+"\""))
		got = finish(t, s.URL(), "evict", name, native)
		require.Contains(t, got.stdout, "  next   nobody else is queued\n", got.stderr)
		require.Empty(t, queueOf(t, s, name))
	})
}

func TestEvictTellsPrograms(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	queued(t, s, name, native, 0)
	queued(t, s, name, redisson, time.Hour)
	evict := func(owner string) (told map[string]any) {
		t.Helper()
		got := finish(t, s.URL(), "evict", "--json", name, owner)
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &told), got.stderr)
		return told
	}
	require.Equal(t, map[string]any{
		"name": name, "owner": native, "client": "redlatch", "client_started": "2024-12-21T01:06:31.296Z",
		"position": 1.0, "deadline_in_ms": nil, "subscribed": "no",
		"next": map[string]any{"owner": redisson, "client": "redisson", "woken": true},
	}, evict(native))
	told := evict(redisson)
	require.Nil(t, told["next"])
	require.Contains(t, told, "next")
	require.InDelta(t, time.Hour.Milliseconds(), told["deadline_in_ms"], 30_000)
}

func TestEvictLeavesTheLiving(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	queued(t, s, name, redisson, time.Hour)
	listening(t, s, name, redisson)
	got := finish(t, s.URL(), "evict", name, redisson)
	require.Equal(t, 1, got.code)
	require.Empty(t, got.stdout)
	oneLine(t, got.stderr)
	require.Contains(t, got.stderr, "somebody listens for "+redisson)
	require.Contains(t, got.stderr, "--even-if-alive")
	require.Equal(t, []string{redisson}, queueOf(t, s, name))

	got = finish(t, s.URL(), "evict", "--even-if-alive", name, redisson)
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "subscribed yes")
	require.Empty(t, queueOf(t, s, name))
}

func TestEvictExitsWithOneWhenItCannot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, user = "some-lock", "evictor"
	s.Do(t, "ACL", "SETUSER", user, "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	blind := "redis://" + user + ":password@" + s.Addr()
	s.Do(t, "SET", codec.QueueKey("no-queue"), "text")
	queued(t, s, name, redisson, time.Hour)
	for _, c := range []struct{ url, name, owner, says string }{
		{s.URL(), name, native, native + " is not in the queue. `redlatch status` shows who is"},
		{s.URL(), "no-queue", native, "holds a string, and the queue of a fair lock is a list"},
		{blind, name, redisson, "whether " + redisson + " is alive cannot be told: "},
		{blind, name, redisson, "NOPERM"},
		{blind, name, redisson, "use --even-if-alive"},
		{s.URL(), "", native, "name"},
		{nobody(t), name, native, "connection refused. Start one"},
		{"sesame", name, native, "not of the form"},
	} {
		got := finish(t, c.url, "evict", c.name, c.owner)
		require.Equal(t, 1, got.code, c.says)
		oneLine(t, got.stderr)
		require.Contains(t, got.stderr, c.says)
		require.NotContains(t, got.stderr, "sesame")
	}
	require.Equal(t, []string{redisson}, queueOf(t, s, name))
	got := finish(t, blind, "evict", "--even-if-alive", name, redisson)
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "subscribed unknown")
}

// Who looks after a queue may sit at a machine whose clock is wrong.
func TestEvictGoesByTheServersClock(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	name, now := redistest.Key(t), time.Now().Add(10*time.Minute)
	s.SetTime(now)
	for i, owner := range []string{redisson, native} {
		s.Do(t, "RPUSH", codec.QueueKey(name), owner)
		s.Do(t, "ZADD", codec.TimeoutKey(name), now.Add(time.Duration(i+1)*5*time.Minute).UnixMilli(), owner)
	}
	got := finish(t, s.URL(), "evict", name, redisson)
	require.Equal(t, 0, got.code, got.stderr)
	left, err := redis.Int64(s.Do(t, "ZSCORE", codec.TimeoutKey(name), native), nil)
	require.NoError(t, err)
	require.InDelta(t, now.Add(5*time.Minute+15*time.Second).UnixMilli(), left, 5000)
}
