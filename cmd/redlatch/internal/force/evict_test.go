package force

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

func TestEvictPrintsText(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		for i, owner := range []string{program.RedissonOwner, "\x1b[2J", program.RedlatchOwner} {
			program.Enqueue(t, s, name, owner, time.Duration(i+1)*time.Hour)
		}
		out := program.OK(t, s.URL(), "evict", name, program.RedissonOwner)
		require.Regexp(t, `^lock "`+regexp.QuoteMeta(name)+`": a waiter was evicted from the queue
  owner  `+program.RedissonOwner+`
         Redisson, place 1, subscribed no, deadline in (1h0m0s|59m\d\d?(\.\d)?s)
  next   "\\x1b\[2J"
         of unknown kind, subscribed no: the lock is free and was announced,\s+but\s+no\s+client\s+received\s+the\s+notification
  left   2 waiters have no subscriber:
         `+"`redlatch evict --all-dead "+regexp.QuoteMeta(name)+"`"+`\s+evicts\s+the\s+dead\s+ones
$`, out)
		require.Equal(t, []string{"\x1b[2J", program.RedlatchOwner}, program.QueueOf(t, s, name))
		program.Narrow(t, strings.TrimPrefix(out, "lock \""+name+"\""))

		program.Listen(t, s, name, program.RedlatchOwner)
		program.Enqueue(t, s, name, program.RedissonOwner, 4*time.Hour)
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		got := program.Finish(t, s.URL(), "evict", name, "\x1b[2J")
		require.Contains(t, got.Stdout, "  owner  \"\\x1b[2J\"\n         of unknown kind, place 1, ")
		require.Contains(t, got.Stdout, "  next   "+program.RedlatchOwner+
			"\n         Redlatch since "+program.RedlatchSince+", subscribed yes, not notified: the\n         lock is held\n"+
			"  left   1 waiter has no subscriber:\n         `redlatch evict --all-dead "+name+"`", got.Stderr)
		require.Contains(t, program.Words(got.Stdout), name+"` evicts it if it is dead")
		program.Narrow(t, strings.TrimPrefix(got.Stdout, "lock \""+name+"\""))
		require.Equal(t, 0, program.Finish(t, s.URL(), "evict", name, program.RedissonOwner).Code)
		got = program.Finish(t, s.URL(), "evict", "--even-if-alive", name, program.RedlatchOwner)
		require.Contains(t, got.Stdout, "  next   none: the queue is empty\n", got.Stderr)
		require.Empty(t, program.QueueOf(t, s, name))
	})
}

func TestEvictPrintsJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	program.Enqueue(t, s, name, program.RedlatchOwner, 0)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	evict := func(owner string) (reported map[string]any) {
		t.Helper()
		got := program.Finish(t, s.URL(), "evict", "--json", name, owner)
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported), got.Stderr)
		return reported
	}
	require.Equal(t, map[string]any{
		"name": name, "owner": program.RedlatchOwner, "client": "redlatch", "client_started": "2024-12-21T01:06:31.296Z",
		"position": 1.0, "deadline_in_ms": nil, "subscribed": "no",
		"next": map[string]any{"owner": program.RedissonOwner, "client": "redisson", "notified": true, "subscribed": "no"},
	}, evict(program.RedlatchOwner))
	reported := evict(program.RedissonOwner)
	require.Nil(t, reported["next"])
	require.Contains(t, reported, "next")
	require.InDelta(t, time.Hour.Milliseconds(), reported["deadline_in_ms"], 30_000)
}

// The next owner acquires the lock immediately and unsubscribes before evict checks for a
// subscriber.
func TestEvictConfirmsNextWaiterWasNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Enqueue(t, s, name, program.RedlatchOwner, time.Hour)
	waiter := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, waiter.Subscribe(protocol.OwnerChannel(name, program.RedlatchOwner)))
	require.IsType(t, redis.Subscription{}, waiter.ReceiveWithTimeout(program.Soon))
	acquired := make(chan any, 1)
	go func() {
		woken := waiter.ReceiveWithTimeout(program.Soon)
		s.Do(t, "HSET", name, program.RedlatchOwner, 1)
		s.Do(t, "LPOP", codec.QueueKey(name))
		_ = waiter.Close()
		acquired <- woken
	}()
	p := redistest.NewProxy(t, s.Addr())
	p.Latency(redistest.ToServer, 20*time.Millisecond)
	got := program.Finish(t, p.URL(), "evict", name, program.RedissonOwner)
	require.IsType(t, redis.Message{}, <-acquired)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "subscribed yes, notified: the\n         lock is free\n")
}

func TestEvictKeepsLiveWaiters(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Listen(t, s, name, program.RedissonOwner)
	got := program.Fails(t, s.URL(), 1, "the channel of "+program.RedissonOwner+" has a subscriber", "evict", name, program.RedissonOwner)
	require.Empty(t, got.Stdout)
	require.Contains(t, got.Stderr, "--even-if-alive")
	require.Equal(t, []string{program.RedissonOwner}, program.QueueOf(t, s, name))

	require.Contains(t, program.OK(t, s.URL(), "evict", "--even-if-alive", name, program.RedissonOwner), "subscribed yes")
	require.Empty(t, program.QueueOf(t, s, name))
}

func TestEvictRejectsInvalidRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, all = "some-lock", "--all-dead"
	s.Do(t, "ACL", "SETUSER", "blind", "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	blind := s.UserURL("blind")
	s.Do(t, "SET", codec.QueueKey("no-queue"), "text")
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	for _, c := range []struct {
		url, says string
		code      int
		args      []string
	}{
		{s.URL(), program.RedlatchOwner + " is not in the queue. `redlatch status " + name + "` shows the queue", 1, []string{name, program.RedlatchOwner}},
		{s.URL(), "holds a string, and the queue of a fair lock is a list", 1, []string{"no-queue", program.RedlatchOwner}},
		{blind, "whether " + program.RedissonOwner + " is alive is unknown: ", 1, []string{name, program.RedissonOwner}},
		{blind, "NOPERM", 1, []string{name, program.RedissonOwner}},
		{blind, "use --even-if-alive", 1, []string{name, program.RedissonOwner}},
		{blind, "cannot detect dead waiters: ", 1, []string{all, name}},
		{s.URL(), "name", 2, []string{"", program.RedlatchOwner}},
		{program.NoServer(t), "connection refused. Start one", 1, []string{name, program.RedlatchOwner}},
		{"sesame", "the scheme is missing", 2, []string{name, program.RedlatchOwner}},
		{s.URL(), "mutually exclusive", 2, []string{all, "--even-if-alive", name}},
		{s.URL(), "--for requires --all-dead", 2, []string{"--for", "1s", name, program.RedissonOwner}},
		{s.URL(), "must not be negative", 2, []string{all, "--for", "-1s", name}},
	} {
		program.Fails(t, c.url, c.code, c.says, append([]string{"evict"}, c.args...)...)
	}
	require.Equal(t, []string{program.RedissonOwner}, program.QueueOf(t, s, name))
	require.Contains(t, program.OK(t, blind, "evict", "--even-if-alive", name, program.RedissonOwner), "subscribed unknown")
}

// evict may run on a machine whose clock is wrong.
func TestEvictUsesServerClock(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	name, now := redistest.Key(t), time.Now().Add(10*time.Minute)
	s.SetTime(now)
	for i, owner := range []string{program.RedissonOwner, program.RedlatchOwner} {
		s.Do(t, "RPUSH", codec.QueueKey(name), owner)
		s.Do(t, "ZADD", codec.TimeoutKey(name), now.Add(time.Duration(i+1)*5*time.Minute).UnixMilli(), owner)
	}
	program.OK(t, s.URL(), "evict", name, program.RedissonOwner)
	left, err := redis.Int64(s.Do(t, "ZSCORE", codec.TimeoutKey(name), program.RedlatchOwner), nil)
	require.NoError(t, err)
	require.InDelta(t, now.Add(5*time.Minute+15*time.Second).UnixMilli(), left, 5000)
}

func TestEvictRemovesDeadWaitersAndNotifiesFirstLive(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		for _, owner := range []string{program.LongOwner(1), program.LongOwner(2), program.RedlatchOwner, program.LongOwner(3)} {
			program.Enqueue(t, s, name, owner, time.Hour)
		}
		program.Listen(t, s, name, program.RedlatchOwner)
		out := program.OK(t, s.URL(), "evict", "--all-dead", "--for", "100ms", name)
		require.Contains(t, out, `lock "`+name+`": 3 waiters were evicted from the queue`)
		for _, line := range []string{
			"  owner  " + program.LongOwner(1) + "\n         Redisson, place 1, subscribed no,", ", place 2,", ", place 4,",
			"  next   " + program.RedlatchOwner + "\n         Redlatch since " + program.RedlatchSince + ", subscribed yes, notified: the\n         lock is free\n",
		} {
			require.Contains(t, out, line)
		}
		require.Equal(t, []string{program.RedlatchOwner}, program.QueueOf(t, s, name))

		got := program.Finish(t, s.URL(), "evict", "--all-dead", "--for", "0s", name)
		require.Equal(t, program.Outcome{Stdout: `lock "` + name + `": no waiter was evicted: all have a subscriber` + "\n"}, got)
		require.Contains(t, program.OK(t, s.URL(), "evict", "--all-dead", "--for", "0s", "--json", name), "\"evicted\": [],\n  \"evicted_count\": 0,")
	})
}

func TestEvictReadsLongQueueInChunks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, waiting = "billing-run", 2500
	program.LongQueue(t, s, name, program.SomeOwner, waiting)
	longest := program.WatchReads(t, s, waiting)
	program.OK(t, s.URL(), "evict", name, program.LongOwner(waiting-1))
	require.LessOrEqual(t, longest(), 1100)
	program.OK(t, s.URL(), "evict", name, program.LongOwner(0))
	require.LessOrEqual(t, longest(), waiting+1000, "all deadlines change")
	before := s.CommandStats(t)["evalsha"]
	out := program.OK(t, s.URL(), "evict", "--all-dead", "--for", "0s", "--json", name)
	require.LessOrEqual(t, longest(), 2000, "twice a thousand deadlines, behind the first")
	require.Less(t, s.CommandStats(t)["evalsha"]-before, int64(waiting/10), "not one command for each")
	var reported struct {
		Evicted []struct {
			Owner    string
			Position int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &reported))
	require.Len(t, reported.Evicted, waiting-2)
	for i, e := range reported.Evicted {
		require.Equal(t, program.LongOwner(i+1), e.Owner)
		require.Equal(t, i+1, e.Position)
	}
	require.Empty(t, program.QueueOf(t, s, name))
}

func TestEvictAllDeadPrintsJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	reported := program.JSON(t, program.OK(t, s.URL(), "evict", "--all-dead", "--for", "0s", "--json", name))
	require.Nil(t, reported["next"])
	require.InDelta(t, 0, reported["queue_length"], 0)
	require.Equal(t, program.RedissonOwner, reported["evicted"].([]any)[0].(map[string]any)["owner"])
	require.Contains(t, program.Finish(t, s.URL(), "evict", "--all-dead", name).Stdout, "no waiter was evicted: the queue is empty")
}

// A waiter that reconnects is without a subscriber for a moment.
func TestEvictAllDeadChecksTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(s.Server.Dial)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
		time.AfterFunc(time.Second, func() { program.Listen(t, s, "job", program.RedissonOwner) })
		done, err := (&allDead{atOnce: 100, look: 3 * time.Second}).evict(t.Context(), client, "job")
		require.NoError(t, err)
		require.Zero(t, done.EvictedCount)
		require.Equal(t, []string{program.RedissonOwner}, program.QueueOf(t, s, "job"))
	})
}

// failing makes a server fail from its fourth count of subscribers on: the second after two looks.
type failing struct {
	net.Conn
	s      *redistest.MiniServer
	counts *int
}

func (f failing) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\r\nPUBSUB\r\n")) {
		if *f.counts++; *f.counts == 4 {
			f.s.FailWith("ERR out of order")
		}
	}
	return f.Conn.Write(p)
}

func TestEvictPrintsEvictedBeforeError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		counts := 0
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			c, err := s.DialNet(ctx, "", "")
			return redis.NewConn(failing{c, s, &counts}, 0, 0), err
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		for i := range 150 {
			program.Enqueue(t, s, "job", program.LongOwner(i), time.Hour)
		}
		all := &allDead{atOnce: 1000, look: 3 * time.Second}
		done, err := all.run(t.Context(), repair.Target{Client: client, Dial: s.Server.Dial}, "job")
		s.Heal()
		require.ErrorContains(t, err, `after 100 waiters of lock "job" were evicted: `)
		var text bytes.Buffer
		done.print(&text)
		require.Contains(t, text.String(), `lock "job": 100 waiters were evicted from the queue`)
		require.Contains(t, text.String(), program.LongOwner(149))
		require.NotContains(t, text.String(), "the queue is empty", "the rest is unknown")
		require.Equal(t, 50, done.QueueLength)
		require.Len(t, program.QueueOf(t, s, "job"), 50)
	})
}

func TestDeadWaitersEvictedInBatches(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 250 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
	}
	for _, i := range []int{60, 149, 249} {
		program.Listen(t, s, name, program.LongOwner(i))
	}
	done, err := (&allDead{atOnce: 100}).evict(t.Context(), program.Open(t, s), name)
	require.NoError(t, err)
	require.Equal(t, []string{program.LongOwner(60), program.LongOwner(149), program.LongOwner(249)}, program.QueueOf(t, s, name))
	require.Equal(t, 247, done.EvictedCount)
	require.Equal(t, 3, done.QueueLength)
	require.Equal(t, program.LongOwner(60), done.Next.Owner)
	require.True(t, done.Next.Notified)
	for i := 1; i < len(done.Evicted); i++ {
		require.Less(t, done.Evicted[i-1].Position, done.Evicted[i].Position)
	}
}

// Batches are processed from the end of the queue, and only the last batch contains a dead waiter.
func TestEvictKeepsNotificationOfEarlierBatch(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 6 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
		if i < 5 {
			program.Listen(t, s, name, program.LongOwner(i))
		}
	}
	done, err := (&allDead{atOnce: 2}).evict(t.Context(), program.Open(t, s), name)
	require.NoError(t, err)
	require.Equal(t, 1, done.EvictedCount)
	require.True(t, done.Next.Notified)
}

func TestEvictReportsProgressBeforeFailure(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	for i := range 4 {
		program.Enqueue(t, s, name, program.LongOwner(i), time.Hour)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &allDead{atOnce: 2, look: time.Hour}
	out := &allEvicted{}
	_, err := (&allDead{}).evictAt(ctx, program.Open(t, s), inspect.Part{Name: name, First: 3, Last: 4}, out)
	require.NoError(t, err)
	cancel()
	_, err = a.evictAt(ctx, program.Open(t, s), inspect.Part{Name: name, First: 1, Last: 2}, out)
	require.ErrorIs(t, a.failed(name, out, err), context.Canceled)
	require.ErrorContains(t, a.failed(name, out, err), "after 2 waiters of lock \""+name+"\" were evicted: ")
	require.ErrorContains(t, a.failed(name, out, admin.ErrNotCounted), "evicted: lock")
	require.NoError(t, a.failed(name, out, nil))
}

func TestOnlyFirstEvictedWaitersShown(t *testing.T) {
	t.Parallel()
	waiters := func(first, last int) (all []admin.Waiter) {
		for place := first; place <= last; place++ {
			all = append(all, admin.Waiter{Position: place})
		}
		return all
	}
	done := &allEvicted{}
	done.add(waiters(30_001, 45_000)) // parts come from the end of the queue
	require.Len(t, done.Evicted, inspect.LookedAt)
	done.add(waiters(301, 700))
	done.add(nil)
	require.Equal(t, 15_400, done.EvictedCount)
	require.Len(t, done.Evicted, inspect.LookedAt)
	require.Equal(t, 301, done.Evicted[0].Position)
	require.Equal(t, 30_001, done.Evicted[400].Position)
	var text bytes.Buffer
	done.print(&text)
	require.True(t, strings.HasPrefix(text.String(), "lock \"\": 15400 waiters were evicted from the queue\n"))
	require.Contains(t, text.String(), "\n         and 5400 more\n")
}
