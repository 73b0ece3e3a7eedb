package show

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// queueStatus is the part of the JSON output about a queue.
type queueStatus struct {
	Queue     []inspect.Waiter
	Uncounted string `json:"counting_error"`
	Why       *why   `json:"why_free"`
	Note      string
}

func asJSON(t *testing.T, s redistest.Target, name string) (reported queueStatus) {
	t.Helper()
	got := program.Finish(t, s.URL(), "status", "--json", name)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported), got.Stderr)
	return reported
}

func TestStatusShowsTheQueue(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
		program.Enqueue(t, s, name, "\x1b[2J", -time.Minute)
		program.Enqueue(t, s, name, program.RedlatchOwner, 0)
		program.Listen(t, s, name, program.RedissonOwner)
		out := program.OK(t, s.URL(), "status", name)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`" is held
  owner  `+program.SomeOwner+`   count 1
         Redlatch since `+program.RedlatchSince+`
  lease  none: it stays until it is released
  queue  3 waiting
      1  `+program.RedissonOwner+`   deadline in (1h0m0s|59m\d\d?(\.\d)?s)
         subscribed yes, Redisson
      2  "\\x1b\[2J"   deadline 1m\d\d?(\.\d)?s ago
         subscribed no, of unknown kind
      3  `+program.RedlatchOwner+`   deadline none
         subscribed no, Redlatch since `+program.RedlatchSince+`
$`, out)
		program.Narrow(t, strings.TrimPrefix(out, "lock \""+name))

		as := asJSON(t, s, name)
		require.Len(t, as.Queue, 3)
		require.InDelta(t, time.Hour.Milliseconds(), *as.Queue[0].DeadlineMillis, 30_000)
		require.InDelta(t, -time.Minute.Milliseconds(), *as.Queue[1].DeadlineMillis, 30_000)
		require.Equal(t, inspect.Waiter{Position: 3, Owned: inspect.OwnedBy(program.RedlatchOwner), Subscribed: "no", Client: inspect.ClientOf(program.RedlatchOwner)}, as.Queue[2])
		require.Equal(t, "redlatch", as.Queue[2].Kind)
		require.Equal(t, program.RedlatchSince, as.Queue[2].Started.Format(time.RFC3339))
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
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, "first:1", time.Hour)
	out := program.OK(t, url, "status", name)
	require.Contains(t, out, "  owner  "+program.SomeOwner+"   count 1\n")
	require.Contains(t, out, "  queue  not shown: this user may not read it\n")
	require.Contains(t, program.Finish(t, url, "status", "--json", name).Stdout, "\"queue_length\": null,\n  \"queue\": null")

	s.Do(t, "ACL", "SETUSER", user, "~redisson_lock*")
	got := program.Finish(t, url, "status", name)
	require.Contains(t, got.Stdout, "  queue  not shown: this user may not read it\n", got.Stderr)

	s.Do(t, "ACL", "SETUSER", user, "+lrange", "+zrange")
	s.Do(t, "DEL", name)
	got = program.Finish(t, url, "status", name)
	require.Contains(t, got.Stdout, "         subscribed unknown, of unknown kind\n")
	require.Contains(t, program.Words(got.Stdout), "whether it is alive is unknown: redis: NOPERM")
	program.Narrow(t, got.Stdout)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	got = program.Finish(t, url, "status", name)
	require.Contains(t, program.Words(got.Stdout), "note listeners cannot be counted: redis: NOPERM")

	program.Fails(t, "redis://"+user+":sesame@"+s.Addr(), 1, "refuses: WRONGPASS", "status", name)
}

func TestStatusOfAnInspectionKeepsAZeroTimeLeft(t *testing.T) {
	t.Parallel()
	seen := &inspect.Snapshot{Name: "x", Kind: inspect.Plain, Holders: []inspect.Holder{{Owner: program.RedissonOwner, Count: "1"}}}
	s := statusOf(seen)
	require.NotNil(t, s.TTLMillis, "held, and about to be free")
	require.Zero(t, *s.TTLMillis)
	seen.TTL = redlatch.NoTTL
	require.Nil(t, statusOf(seen).TTLMillis)
}
