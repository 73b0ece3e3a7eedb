package show

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlatch"
)

func listeningAll(t *testing.T, s *redistest.Server, name string, from, to int) {
	t.Helper()
	var channels []string
	for i := from; i < to; i++ {
		channels = append(channels, protocol.OwnerChannel(name, program.LongOwner(i)))
	}
	program.Subscribe(t, s, channels...)
}

func TestStatusShowsFrontOfQueueAndCountsRest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name = "contended"
	program.LongQueue(t, s, name, program.RedissonOwner, 1500)
	listeningAll(t, s, name, 0, 70)
	listeningAll(t, s, name, 900, 1495)
	statusGolden(t, s, name, 0)

	out := program.OK(t, s.URL(), "status", "--waiters", "0", name)
	require.Contains(t, out, "\n  queue  1500 waiting\n")
	require.NotContains(t, out, "more")
	require.Equal(t, 665, strings.Count(out, "  subscribed yes,"))
	require.Equal(t, 835, strings.Count(out, "  subscribed no,"))
	for place := 1; place <= 1500; place++ {
		require.Contains(t, out, fmt.Sprintf("\n%7d  %s   deadline in ", place, program.LongOwner(place-1)))
	}
	require.Contains(t, program.Words(program.OK(t, s.URL(), "status", "--waiters", "1495", name)), " and 5 more, all not subscribed (--waiters 0 shows all)")
	require.Equal(t, program.Outcome{Code: 2, Stdout: "", Stderr: "redlatch: --waiters must not be negative\n"}, program.Finish(t, s.URL(), "status", "--waiters", "-1", name))

	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">password", "+ping", "+eval", "+evalsha", "+hgetall", "+pttl", "+lrange", "+zrange", "allkeys")
	got := program.Finish(t, "redis://reader:password@"+s.Addr(), "status", name)
	require.Contains(t, got.Stdout, "\n         and 1480 more, all unknown (--waiters 0 shows all)\n")
	require.Contains(t, program.Words(got.Stdout), "note cannot count subscribers: redis: NOPERM")
}

func TestStatusReadsLongQueuePartially(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, waiting = "billing-run", inspect.LookedAt + 500
	program.LongQueue(t, s, name, program.RedissonOwner, waiting)
	listeningAll(t, s, name, waiting-1, waiting)
	longest := program.WatchReads(t, s, waiting)
	said := func(args ...string) string {
		out := program.OK(t, s.URL(), append([]string{"status", name}, args...)...)
		require.LessOrEqual(t, longest(), 400, "200 places and their deadlines")
		return program.Words(out)
	}
	text := said()
	require.Contains(t, text, "queue 10500 waiting 1 "+program.LongOwner(0))
	require.Contains(t, text, " and 10480 more: 9980 not subscribed, 500 unknown (--from 21 shows the next)")

	text = said("--waiters", "0")
	require.Equal(t, 10_000, strings.Count(text, " deadline in "))
	require.Contains(t, text, " and 500 more, all unknown (--from 10001 shows the next)")
	require.Equal(t, 10_000, strings.Count(said("--waiters", "20000"), " deadline in "), "no more")

	text = said("--from", "10001", "--waiters", "300")
	require.Contains(t, text, "queue 10500 waiting 10001 "+program.LongOwner(10000))
	require.Contains(t, text, " 10300 "+program.LongOwner(10299))
	require.Contains(t, text, " and 10200 more, all unknown (--from 10301 shows the next)")
	require.Equal(t, 300, strings.Count(text, " deadline in "))
	text = said("--from", "10490", "--waiters", "0")
	require.Contains(t, text, " 10500 "+program.LongOwner(10499))
	require.Contains(t, text, " subscribed yes, Redisson and 10489 more, all unknown")
	require.NotContains(t, text, "--from")
	require.Contains(t, said("--from", "20000"), "queue 10500 waiting and 10500 more, all unknown")

	var reported struct {
		Length int `json:"queue_length"`
		Queue  []inspect.Waiter
		More   more
	}
	got := program.Finish(t, s.URL(), "status", "--json", name)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported), got.Stderr)
	require.Equal(t, waiting, reported.Length)
	require.Len(t, reported.Queue, shownWaiters)
	require.Equal(t, waiting-shownWaiters, reported.More.Count)
	require.Equal(t, program.Outcome{Code: 2, Stdout: "", Stderr: "redlatch: --from must be a place in the queue, from 1 on\n"},
		program.Finish(t, s.URL(), "status", "--from", "0", name))
}

func TestQueueRemainderMayBeUnknown(t *testing.T) {
	t.Parallel()
	length := 100
	s := &status{QueueLength: &length, Queue: []inspect.Waiter{{Subscribed: "yes"}, {Subscribed: "no"}, {Subscribed: "unknown"}}}
	s.record(nil, nil, errNotCountable)
	s.show(2)
	require.Equal(t, &more{Count: 98, Unknown: 98}, s.More)
	require.Equal(t, "not; countable", s.Uncounted)
	s.Queue = append(s.Queue, inspect.Waiter{Subscribed: "yes"}, inspect.Waiter{Subscribed: "no"})
	s.show(1)
	require.Equal(t, &more{Count: 99, Subscribed: 1, NotSubscribed: 2, Unknown: 96}, s.More)
	require.Equal(t, "and 99 more: 1 subscribed, 2 not subscribed, 96 unknown", s.More.String())
}

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

func TestStatusShowsQueue(t *testing.T) {
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
  lease  none: held until released
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

func TestStatusShowsReadableParts(t *testing.T) {
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
	require.Contains(t, program.Words(got.Stdout), "may be dead: redis: NOPERM")
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	got = program.Finish(t, url, "status", name)
	require.Contains(t, program.Words(got.Stdout), "note cannot count subscribers: redis: NOPERM")

	program.Fails(t, "redis://"+user+":sesame@"+s.Addr(), 1, "rejected the request: WRONGPASS", "status", name)
}

func TestStatusKeepsZeroTimeLeft(t *testing.T) {
	t.Parallel()
	seen := &inspect.Snapshot{Name: "x", Kind: inspect.Plain, Holders: []inspect.Holder{{Owner: program.RedissonOwner, Count: "1"}}}
	s := statusOf(seen)
	require.NotNil(t, s.TTLMillis, "held, and about to be free")
	require.Zero(t, *s.TTLMillis)
	seen.TTL = redlatch.NoTTL
	require.Nil(t, statusOf(seen).TTLMillis)
}

func TestStatusShowsCountDownLatch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := program.Open(t, s)
	l := rlatch.New(client, "imports")
	_, err := l.TrySetCount(t.Context(), 3)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() { came <- l.Wait(ctx) }()
	program.AwaitSubscribers(t, s, protocol.CountDownChannel("imports"), 1)

	got := program.Finish(t, s.URL(), "status", "imports")
	require.Equal(t, program.Outcome{Stdout: "\"imports\" is not a lock but a number: 3\n" +
		"  latch  as a count-down latch it is closed: 3 to count down; 1 connection waits for it\n"}, got)
	got = program.Finish(t, s.URL(), "status", "--json", "imports")
	require.Zero(t, got.Code)
	require.Contains(t, got.Stdout, `"available": 3`)
	require.Contains(t, got.Stdout, `"latch_waiters": 1`)
	require.Contains(t, got.Stdout, `"kind": "latch"`)
	cancel()
	<-came

	s.Do(t, "SET", "text", "12 monkeys")
	program.Fails(t, s.URL(), 1, "holds a string", "status", "text")
	s.Do(t, "SET", "imports", -3)
	require.Contains(t, program.Finish(t, s.URL(), "status", "imports").Stdout, "it is open")
}

func TestStatusShowsSemaphore(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		s.Do(t, "SET", name, 3)
		got := program.Finish(t, s.URL(), "status", name)
		require.Contains(t, got.Stdout, "is not a lock but a number: 3\n")
		require.Contains(t, got.Stdout, "as a semaphore it has 3 permits available, 0 are taken")
		require.Contains(t, got.Stdout, "as a count-down latch it is closed: 3 to count down")
		s.Do(t, "SET", name, 1)
		s.Do(t, "ZADD", protocol.PermitsKey(name), 1, "0123456789abcdef")
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "as a semaphore it has 1 permit available, 1 is taken\n")
		s.Do(t, "SET", name, 3)
		s.Do(t, "ZADD", protocol.PermitsKey(name), 1, "0123456789abcdef", protocol.PermitForever, "fedcba9876543210")
		got = program.Finish(t, s.URL(), "status", name)
		require.Equal(t, program.Outcome{Stdout: fmt.Sprintf("%q is not a lock but a number: 3\n", name) + `  permit as a semaphore it has 3 permits available, 2 are taken
  permit 30313233343536373839616263646566   its lease has expired
  permit 66656463626139383736353433323130   never ends
`}, got)
		got = program.Finish(t, s.URL(), "status", "--json", name)
		require.JSONEq(t, `{"name":"`+name+`","kind":"semaphore","available":3,"taken":2,"ttl_ms":null,"permits":[`+
			`{"id":"30313233343536373839616263646566","left_ms":0},{"id":"66656463626139383736353433323130","left_ms":null}]}`, got.Stdout)
		for i := range 25 {
			s.Do(t, "ZADD", protocol.PermitsKey(name), protocol.PermitForever, "a permit of mine"[:15]+string(rune('a'+i)))
		}
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "and 7 more")
		s.Do(t, "PEXPIRE", name, 60_000)
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "  lives  ")

		program.Fails(t, s.URL(), 1, "is not a lock", "status", "--exit-code", name)

		s.Do(t, "SET", name, "seven")
		program.Fails(t, s.URL(), 1, "holds a string, and a lock is a hash", "status", name)
	})
}
