package main

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// queued puts somebody into the queue of a fair lock by hand.
func queued(t *testing.T, s redistest.Target, name, owner string, deadline time.Duration) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	if deadline != 0 {
		s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(deadline).UnixMilli(), owner)
	}
}

// listening makes a connection listen as owner's waiter does.
func listening(t *testing.T, s redistest.Target, name, owner string) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.OwnerChannel(name, owner)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, soon)
	require.NoError(t, err)
}

// queueStatus is what programs are told of a queue.
type queueStatus struct {
	Queue []waiter
	Note  string
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
		queued(t, s, name, "first:1", time.Hour)
		queued(t, s, name, "\x1b[2J", -time.Minute)
		queued(t, s, name, "third:3", 0)
		listening(t, s, name, "first:1")
		got := finish(t, s.URL(), "status", name)
		require.Equal(t, 0, got.code, got.stderr)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`" is held
  owner  `+someOwner+`   count 1
  lease  none: it stays until somebody frees it
  queue  3 waiting
      1  first:1   deadline in (1h0m0s|59m\d\d?(\.\d)?s)   subscribed yes
      2  "\\x1b\[2J"   deadline 1m\d\d?(\.\d)?s ago   subscribed no
      3  third:3   deadline none   subscribed no
$`, got.stdout)

		as := asJSON(t, s, name)
		require.Len(t, as.Queue, 3)
		require.InDelta(t, time.Hour.Milliseconds(), *as.Queue[0].DeadlineMillis, 30_000)
		require.InDelta(t, -time.Minute.Milliseconds(), *as.Queue[1].DeadlineMillis, 30_000)
		require.Equal(t, waiter{Position: 3, Owner: "third:3", Subscribed: "no"}, as.Queue[2])
		require.Equal(t, "yes", as.Queue[0].Subscribed)
		require.Empty(t, as.Note)
	})
}

func TestStatusSaysWhyAFreeLockIsNotTaken(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		what     string
		deadline time.Duration
		listens  bool
		says     string
	}{
		{"dead", time.Hour, false, "the next in the queue has no subscriber: unless it is about to ask, it is dead, and blocks the lock for "},
		{"overdue", -time.Second, true, "the deadline of the next in the queue is over: whoever asks next removes it"},
		{"alive", time.Hour, true, "the next in the queue listens"},
		{"dead for ever", 0, false, "no deadline: nobody will remove it"},
		{"alive without a deadline", 0, true, "the next in the queue listens"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			queued(t, s, name, "first:1", c.deadline)
			queued(t, s, name, "second:2", time.Hour)
			if c.listens {
				listening(t, s, name, "first:1")
			}
			got := finish(t, s.URL(), "status", name)
			require.Equal(t, 0, got.code, got.stderr)
			require.Contains(t, got.stdout, "lock \""+name+"\" is free\n  queue  2 waiting\n")
			require.Contains(t, got.stdout, "\n  note   ")
			require.Contains(t, got.stdout, c.says)
			require.Contains(t, asJSON(t, s, name).Note, c.says)
		})
	}
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
	require.Contains(t, finish(t, url, "status", "--json", name).stdout, `"queue": null`)

	s.Do(t, "ACL", "SETUSER", user, "~redisson_lock*")
	got = finish(t, url, "status", name)
	require.Contains(t, got.stdout, "  queue  not shown: this user may not read it\n", got.stderr)

	s.Do(t, "ACL", "SETUSER", user, "+lrange", "+zrange")
	s.Do(t, "DEL", name)
	got = finish(t, url, "status", name)
	require.Contains(t, got.stdout, "   subscribed unknown\n")
	require.Contains(t, got.stdout, "whether the next in the queue lives cannot be told")

	got = finish(t, "redis://"+user+":sesame@"+s.Addr(), "status", name)
	require.Equal(t, 1, got.code)
	oneLine(t, got.stderr)
	require.Contains(t, got.stderr, "refuses: WRONGPASS")
	require.NotContains(t, got.stderr, "sesame")
}

func TestStatusOfAnInspectionKeepsAZeroTimeLeft(t *testing.T) {
	t.Parallel()
	in := &rlock.Inspection{Name: "x", Kind: "plain", Holders: []rlock.Holder{{Text: "a:1", CountText: "1"}}}
	s := statusOf(in, time.Now())
	require.NotNil(t, s.TTLMillis, "held, and about to be free")
	require.Zero(t, *s.TTLMillis)
	in.TTL = codec.NoTTL
	require.Nil(t, statusOf(in, time.Now()).TTLMillis)
}
