package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// queueStatus is what programs are told of a queue.
type queueStatus struct {
	Queue     []waiter
	Uncounted string `json:"counting_error"`
	Why       *why   `json:"why_free"`
	Note      string
}

func asJSON(t *testing.T, s redistest.Target, name string) (told queueStatus) {
	t.Helper()
	got := finish(t, s.URL(), "status", "--json", name)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &told), got.stderr)
	return told
}

func TestStatusShowsTheQueue(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		s.Do(t, "HSET", name, someOwner, 1)
		queued(t, s, name, redisson, time.Hour)
		queued(t, s, name, "\x1b[2J", -time.Minute)
		queued(t, s, name, native, 0)
		listening(t, s, name, redisson)
		got := finish(t, s.URL(), "status", name)
		require.Equal(t, 0, got.code, got.stderr)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`" is held
  owner  `+someOwner+`   count 1
         Redlatch since `+since+`
  lease  none: it stays until somebody frees it
  queue  3 waiting
      1  `+redisson+`   deadline in (1h0m0s|59m\d\d?(\.\d)?s)
         subscribed yes, Redisson
      2  "\\x1b\[2J"   deadline 1m\d\d?(\.\d)?s ago
         subscribed no, of unknown kind
      3  `+native+`   deadline none
         subscribed no, Redlatch since `+since+`
$`, got.stdout)
		narrow(t, strings.TrimPrefix(got.stdout, "lock \""+name))

		as := asJSON(t, s, name)
		require.Len(t, as.Queue, 3)
		require.InDelta(t, time.Hour.Milliseconds(), *as.Queue[0].DeadlineMillis, 30_000)
		require.InDelta(t, -time.Minute.Milliseconds(), *as.Queue[1].DeadlineMillis, 30_000)
		require.Equal(t, waiter{Position: 3, Owner: native, Subscribed: "no", Client: inspect.ClientOf(native)}, as.Queue[2])
		require.Equal(t, "redlatch", as.Queue[2].Kind)
		require.Equal(t, since, as.Queue[2].Started.Format(time.RFC3339))
		require.Equal(t, "yes", as.Queue[0].Subscribed)
		require.Equal(t, inspect.Client{Kind: "redisson"}, as.Queue[0].Client)
		require.Nil(t, as.Why)
		require.Empty(t, as.Note)
		require.Empty(t, as.Uncounted)
	})
}

func TestStatusShowsWhatTheUserMayRead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, user = "some-lock", "reader"
	s.Do(t, "ACL", "SETUSER", user, "reset", "on", ">password", "+ping", "+eval", "+evalsha", "+hgetall", "+pttl", "~"+name)
	url := "redis://" + user + ":password@" + s.Addr()
	s.Do(t, "HSET", name, someOwner, 1)
	queued(t, s, name, "first:1", time.Hour)
	got := finish(t, url, "status", name)
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "  owner  "+someOwner+"   count 1\n")
	require.Contains(t, got.stdout, "  queue  not shown: this user may not read it\n")
	require.Contains(t, finish(t, url, "status", "--json", name).stdout, "\"queue_length\": null,\n  \"queue\": null")

	s.Do(t, "ACL", "SETUSER", user, "~redisson_lock*")
	got = finish(t, url, "status", name)
	require.Contains(t, got.stdout, "  queue  not shown: this user may not read it\n", got.stderr)

	s.Do(t, "ACL", "SETUSER", user, "+lrange", "+zrange")
	s.Do(t, "DEL", name)
	got = finish(t, url, "status", name)
	require.Contains(t, got.stdout, "         subscribed unknown, of unknown kind\n")
	require.Contains(t, words(got.stdout), "whether it lives cannot be told: redis: NOPERM")
	narrow(t, got.stdout)
	s.Do(t, "HSET", name, someOwner, 1)
	got = finish(t, url, "status", name)
	require.Contains(t, words(got.stdout), "note who listens cannot be told: redis: NOPERM")

	got = finish(t, "redis://"+user+":sesame@"+s.Addr(), "status", name)
	require.Equal(t, 1, got.code)
	oneLine(t, got.stderr)
	require.Contains(t, got.stderr, "refuses: WRONGPASS")
	require.NotContains(t, got.stderr, "sesame")
}

func TestStatusOfAnInspectionKeepsAZeroTimeLeft(t *testing.T) {
	t.Parallel()
	in := &rlock.Inspection{Name: "x", Kind: "plain", Holders: []rlock.Holder{{Text: redisson, CountText: "1"}}}
	shape := inspect.ShapeOf(in)
	s := statusOf(in, &shape, time.Now())
	require.NotNil(t, s.TTLMillis, "held, and about to be free")
	require.Zero(t, *s.TTLMillis)
	in.TTL = codec.NoTTL
	require.Nil(t, statusOf(in, &shape, time.Now()).TTLMillis)
}
