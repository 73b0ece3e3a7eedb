package show

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
)

func TestWatchPrintsLockEvents(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		name := redistest.Key(t)
		p := program.Start(t, s.URL(), "watch", "--json", name)
		require.Equal(t, "free", program.Events(p, "free")[0]["event"])
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		e := program.Events(p, "taken")[0]
		require.Equal(t, program.SomeOwner, e["owner"])
		require.Equal(t, "redlatch", e["client"])
		require.Equal(t, name, e["name"])
		require.NotContains(t, e, "ttl_ms", "it has no lease")
		s.Do(t, "HINCRBY", name, program.SomeOwner, 1)
		program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
		require.InDelta(t, 2, program.Events(p, "entered")[0]["count"], 0)
		e = program.Events(p, "queued")[0]
		require.Equal(t, program.RedissonOwner, e["owner"])
		require.Equal(t, "redisson", e["client"])
		require.InDelta(t, 1, e["position"], 0)
		s.Do(t, "DEL", name)
		require.Equal(t, program.SomeOwner, program.Events(p, "gone")[0]["owner"])
		s.Do(t, "DEL", codec.QueueKey(name))
		require.Equal(t, program.RedissonOwner, program.Events(p, "quit")[0]["owner"])
		s.Do(t, "PUBLISH", protocol.OwnerChannel(name, program.RedissonOwner), protocol.MessageUnlock)
		require.Equal(t, program.RedissonOwner, program.Events(p, "woken")[0]["owner"])
		require.NoError(t, p.Cmd.Process.Signal(program.Interrupt))
		require.Equal(t, program.CodeInterrupted, p.Outcome(program.Soon).Code)
	})
}

func TestWatchFollowsAllLocksOfPattern(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
	s.Do(t, "HSET", "{eu}orders:2", program.RedissonOwner, 1)
	s.Do(t, "HSET", "other", program.RedissonOwner, 1)
	p := program.Start(t, s.URL(), "watch", "--json", "*orders:*")
	seen := map[any]bool{program.Events(p, "held")[0]["name"]: true, program.Events(p, "held")[0]["name"]: true}
	require.Equal(t, map[any]bool{"orders:1": true, "{eu}orders:2": true}, seen)
	s.Do(t, "HSET", "orders:3", program.SomeOwner, 1) // no message
	s.Do(t, "PUBLISH", codec.LockChannel("other"), protocol.MessageUnlock)
	s.Do(t, "DEL", "{eu}orders:2")
	s.Do(t, "PUBLISH", codec.LockChannel("{eu}orders:2"), protocol.MessageUnlock)
	require.Equal(t, "{eu}orders:2", program.Events(p, "released")[0]["name"])
	s.Do(t, "HSET", "orders:4", "mode", "read", program.SomeOwner, 1)
	for name, channel := range map[string]func(string) string{"orders:3": codec.LockChannel, "orders:4": protocol.ReadWriteChannel} {
		s.Do(t, "PUBLISH", channel(name), protocol.MessageUnlock)
		e := program.Events(p, "held")[0]
		require.Equal(t, name, e["name"], "a message tells of it")
		require.InDelta(t, 1, e["messages"], 0)
	}
}

func TestWatchFollowsReadWriteHolders(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		name := redistest.Key(t)
		p := program.Start(t, s.URL(), "watch", "--json", name)
		program.Events(p, "free")
		writer := program.RedissonOwner + ":write"
		s.Do(t, "HSET", name, "mode", "write", writer, 1)
		e := program.Events(p, "taken")[0]
		require.Equal(t, writer, e["owner"])
		require.Equal(t, "redisson", e["client"])
		require.Equal(t, "write", e["mode"])
		s.Do(t, "EVAL", "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[1], 1)", 1, name, program.SomeOwner)
		e = program.Events(p, "passed")[0]
		require.Equal(t, program.SomeOwner, e["owner"])
		require.Equal(t, writer, e["from"])
		require.Equal(t, "read", e["mode"])
		s.Do(t, "HSET", name, program.RedissonOwner, 1)
		require.Equal(t, program.RedissonOwner, program.Events(p, "entered")[0]["owner"])
		s.Do(t, "HDEL", name, program.SomeOwner)
		require.Equal(t, program.SomeOwner, program.Events(p, "left")[0]["owner"])
	})
}

func TestWatchReportsPolledReadWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&redisson_lock__channel:*")
	p := program.Start(t, s.URL(), "watch", "orders")
	p.Line()
	require.NoError(t, p.Cmd.Process.Signal(program.Interrupt))
	got := p.Outcome(program.Soon)
	require.Equal(t, program.CodeInterrupted, got.Code, got.Stderr)
	require.Contains(t, got.Stderr, "redlatch: cannot subscribe to messages of read/write locks; polling every second: NOPERM")
}

func TestWatchIgnoresWakeWithoutAcquisition(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
		p := program.Start(t, s.URL(), "watch", "--json", name)
		program.Events(p, "held")
		calling := publishing(t, s, protocol.OwnerChannel(name, program.RedissonOwner))
		program.Events(p, "woken")
		program.Events(p, "woken") // the first may have been sent before the first look
		s.Do(t, "HINCRBY", name, program.SomeOwner, 1)
		for _, e := range program.Events(p, "entered") {
			require.Contains(t, []any{"woken", "entered"}, e["event"])
		}
		calling()
		publishing(t, s, codec.LockChannel(name))
		reported := program.Events(p, "passed")
		e := reported[len(reported)-1]
		require.Equal(t, program.SomeOwner, e["owner"])
		require.Equal(t, program.SomeOwner, e["from"])
	})
}

// publishing publishes until end is called, because watch ignores messages that are older than its
// look.
func publishing(t *testing.T, s redistest.Target, channel string) (end func()) {
	t.Helper()
	var publisher sync.WaitGroup
	stop := make(chan struct{})
	publisher.Go(func() {
		for {
			s.Do(t, "PUBLISH", channel, protocol.MessageUnlock)
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	end = sync.OnceFunc(func() {
		close(stop)
		publisher.Wait()
	})
	t.Cleanup(end)
	return end
}

func TestWatchFollowsFrontOfLongQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	program.LongQueue(t, s, "job", program.SomeOwner, 1000)
	longest := program.WatchReads(t, s, 1000)
	p := program.Start(t, s.URL(), "watch", "--json", "job")
	require.InDelta(t, 1000, program.Events(p, "held")[0]["queue_length"], 0)
	s.Do(t, "LREM", codec.QueueKey("job"), 1, program.LongOwner(100)) // later waiters move up
	reported := program.Events(p, "quit")
	require.Len(t, reported, 1)
	require.Equal(t, program.LongOwner(100), reported[0]["owner"])
	require.InDelta(t, 999, reported[0]["queue_length"], 0)
	require.LessOrEqual(t, longest(), 2*followedPlaces, "places and their deadlines")
	s.Do(t, "DEL", codec.QueueKey("job"))
	s.Do(t, "RPUSH", codec.QueueKey("job"), program.RedissonOwner)
	program.Events(p, "quit")
}

func TestWatchSurvivesServerOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	p := program.Start(t, s.URL(), "watch", "--json", "--for", "60s", name)
	program.Events(p, "held")
	s.Kill()
	s.Restart()
	require.Equal(t, program.SomeOwner, program.Events(p, "gone")[0]["owner"])
	require.Eventually(t, func() bool { return len(s.Channels(t)) == 0 && s.Do(t, "PUBSUB", "NUMPAT") == int64(3) }, 2*program.Soon, program.PollEvery)
	s.Do(t, "HSET", name, program.RedissonOwner, 1)
	require.Equal(t, program.RedissonOwner, program.Events(p, "taken")[0]["owner"])
	require.NoError(t, p.Cmd.Process.Signal(program.Interrupt))
	got := p.Outcome(program.Soon)
	require.Equal(t, program.CodeInterrupted, got.Code)
	require.Contains(t, got.Stderr, "redlatch: messages may be missed: ")
	require.Contains(t, got.Stderr, "redlatch: messages arrive again\n")
}

func TestWatchEndsAfterDuration(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	out := program.OK(t, s.URL(), "watch", "--for", "2s", redistest.Key(t))
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d\d\dZ free      the queue is empty\n$`, out)
	out = program.OK(t, s.URL(), "watch", "--for", "1ns", redistest.Key(t))
	require.Contains(t, out, " free ", "its state is always printed")
	program.Fails(t, s.URL(), 2, "--for must be more than 0s\n", "watch", "--for", "-1s", "x")
}

func TestWatchRejectsCounter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "SET", "pool", 3)
	program.Fails(t, s.URL(), 1, "the key \"pool\" holds a string, and a lock is a hash: another program uses this name. "+
		"For a semaphore or a latch, use `redlatch status pool`\n", "watch", "pool")
}

func TestEventLineDescribesEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	for want, e := range map[string]follow.Event{
		"free      the queue is empty":                        {What: follow.Free},
		"free      2 queued, next Redisson 0b8f3a11:57":       {What: follow.Free, Queue: 2, Next: program.RedissonOwner},
		"held      Redlatch 00000001:7, count 2, lease 1m30s": {What: follow.Held, Owner: program.SomeOwner, Count: "2", Lease: 90 * time.Second},
		"held      owner unknown, count 1, no lease":          {What: follow.Held, Count: "1", Lease: -1},
		"taken     Redisson 0b8f3a11:57, lease 30s":           {What: follow.Taken, Owner: program.RedissonOwner, Lease: 30 * time.Second},
		"passed    Redisson 0b8f3a11:57 from 00000001:7":      {What: follow.Passed, Owner: program.RedissonOwner, From: program.SomeOwner},
		"entered   Redlatch 00000001:7, count 3":              {What: follow.Entered, Owner: program.SomeOwner, Count: "3"},
		"left      Redlatch 00000001:7, others hold it":       {What: follow.Left, Owner: program.SomeOwner},
		"queued    Redisson 0b8f3a11:57, place 4":             {What: follow.Queued, Owner: program.RedissonOwner, Place: 4},
		"released  Redisson 0b8f3a11:57":                      {What: follow.Released, Owner: program.RedissonOwner},
	} {
		e.At, e.Name = at, "orders\n1"
		line := "03:04:05.678Z " + want
		require.Equal(t, line, eventLine(&e, "", false))
		require.Equal(t, line+`  "orders\n1"  a label`, eventLine(&e, "a label", true))
		label := "import.sh@ip-10-0-0-12.eu-west-1.example pid 4711"
		require.Equal(t, line+"  "+label, eventLine(&e, label, false))
	}
}

func TestEventJSONIsComplete(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(eventJSONOf(&follow.Event{
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Name: "a\xff", What: follow.Passed, Owner: program.SomeOwner, From: program.RedissonOwner,
		Count: "2", Mode: "write", Lease: 30 * time.Second, Place: 3, Queue: 4, Messages: 5,
	}, "a label"))
	require.NoError(t, err)
	require.JSONEq(t, `{"at":"2026-01-02T03:04:05Z","name":"a\ufffd","name_base64":"Yf8=","event":"passed","owner":"`+program.SomeOwner+`",
		"client":"redlatch","client_started":"2024-12-21T01:06:31.296Z","label":"a label","from":"`+program.RedissonOwner+`","count":2,"mode":"write",
		"ttl_ms":30000,"position":3,"queue_length":4,"messages":5}`, string(text))
	text, err = json.Marshal(eventJSONOf(&follow.Event{Name: "a", What: follow.Held, Owner: "\xff", Count: "1", Lease: -1}, ""))
	require.NoError(t, err)
	require.JSONEq(t, `{"at":"0001-01-01T00:00:00Z","name":"a","event":"held","owner":"\ufffd","owner_base64":"/w==","client":"unknown","count":1,
		"no_ttl":true,"queue_length":0,"messages":0}`, string(text))
}

func TestWatchReportsUnreadableKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "other:job", program.SomeOwner, 1)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", ">password", "+@all", "~app:*", "&*")
	srv, err := connect.New(connect.Settings{Address: s.UserURL("onlooker")})
	require.NoError(t, err)
	found := make(chan discovery)
	go (&watcher{srv: srv, pattern: "other:*"}).find(t.Context(), found)
	select {
	case m := <-found:
		require.ErrorContains(t, m.err, "1 key was not inspected: this user may not read it (NOPERM")
	case <-time.After(program.Soon):
		t.Fatal("nothing was reported")
	}
}
