package luasrc

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// readBy runs a script about a queue and returns how many of its n places and deadlines it has read.
func (c *timedQueue) readBy(conn, watch redis.Conn, n int, fill func(call *transport.Call)) int {
	c.t.Helper()
	var call transport.Call
	fill(&call)
	c.do("SCRIPT", "LOAD", call.Script.Text())
	_, err := conn.Do("EVALSHA", append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)...)
	require.NoError(c.t, err)
	c.do("ECHO", "the end")
	var lines []monitor.Line
	for {
		text, err := redis.String(redis.ReceiveWithTimeout(watch, 10*time.Second))
		require.NoError(c.t, err)
		line, err := monitor.Parse(text)
		require.NoError(c.t, err)
		if line.Args[0] == "ECHO" {
			most, _ := monitor.LongestRead(lines, n)
			return most
		}
		lines = append(lines, line)
	}
}

// Scripts that change all deadlines, like Redisson's acquire, read the whole queue.
func TestFairScriptsBoundQueueReads(t *testing.T) {
	t.Parallel()
	const n = 30_000
	c := newTimedQueue(t, n)
	c.do("HSET", c.keys[0], a9, "1")
	c.do("ACL", "SETUSER", "viewer", "on", "nopass", "~*", "+eval", "+evalsha", "+pttl", "+hgetall", "+lrange", "+zrange")
	viewer := c.server.Dial(t)
	_, err := viewer.Do("AUTH", "viewer", "any")
	require.NoError(t, err)
	watch := c.server.Dial(t)
	_, err = watch.Do("MONITOR")
	require.NoError(t, err)
	owner := func(fromEnd int) string { return c.all[n-fromEnd].owner }
	soon := strconv.FormatInt(c.all[0].deadline, 10)
	for _, step := range []struct {
		does  string
		conn  redis.Conn
		bound int
		fill  func(call *transport.Call)
	}{
		{"a rejected try", c.conn, 0, func(call *transport.Call) { c.lock.Try(call, t0, a1, 1, fairLease) }},
		{"an attempt of the last", c.conn, 0, func(call *transport.Call) { c.lock.Acquire(call, t0, owner(1), 1, fairLease) }},
		{"a release", c.conn, 0, func(call *transport.Call) { c.lock.Release(call, t0, a1, fairLease, 0) }},
		{"a nudge", c.conn, 0, func(call *transport.Call) { c.lock.Nudge(call, owner(1)) }},
		{"a look at a part", c.conn, 400, func(call *transport.Call) { c.lock.Inspect(call, 64, "NUMSUB", 15_000, 15_199) }},
		{"a look at a part with the least rights", viewer, 500, func(call *transport.Call) { c.lock.Inspect(call, 0, "NUMSUB", 15_000, 15_199) }},
		{"the last owner leaves", c.conn, 1100, func(call *transport.Call) { c.lock.GiveUp(call, t0, owner(1), 1) }},
		{"the 2,500th from the end leaves", c.conn, 9000, func(call *transport.Call) { c.lock.GiveUp(call, t0, owner(2500), 1) }},
		{"an unqueued owner leaves", c.conn, 1100, func(call *transport.Call) { c.lock.GiveUp(call, t0, a2, 1) }},
		{"the last leaves with an unqueued owner", c.conn, 1100, func(call *transport.Call) {
			c.lock.GiveUp(call, t0, a2, 1)
			c.lock.GiveUp(call, t0, owner(2), 1)
		}},
		{"an eviction that moves no deadline", c.conn, 0, func(call *transport.Call) {
			c.lock.Evict(call, t0+5000, fairKeep, []reply.Place{{Owner: c.all[0].owner, Deadline: soon}})
		}},
		{"a look at deadlines that are out of order, with the least rights", viewer, 10_700, func(call *transport.Call) {
			c.do("ZADD", c.keys[2], 1, c.all[15_100].owner)
			c.lock.Inspect(call, 0, "NUMSUB", 15_000, 15_199)
		}},
	} {
		require.LessOrEqual(t, c.readBy(step.conn, watch, n, step.fill), step.bound, step.does)
	}
}

// A union of very long sets takes the server longer than moving each deadline.
func TestVeryLongQueueMovesDeadlinesIndividually(t *testing.T) {
	testlevel.All(t, "two queues of 20,000")
	t.Parallel()
	for behind, unions := range map[int64]int64{20_000: 1, 20_001: 0} {
		c := newTimedQueue(t, behind+1)
		var call transport.Call
		c.lock.Try(&call, t0, c.all[0].owner, 7, fairLease)
		require.Nil(t, c.do("EVAL", append([]any{call.Script.Text(), call.NumKeys}, call.Args...)...))
		stats := c.server.CommandStats(t)
		require.Equal(t, unions, stats["zunionstore"], "%d behind", behind)
		require.Equal(t, (1-unions)*behind, stats["zincrby"], "%d behind", behind)
		for _, e := range []entry{c.all[1], c.all[behind]} {
			deadline, err := redis.Int64(c.do("ZSCORE", c.keys[2], e.owner), nil)
			require.NoError(t, err)
			require.Equal(t, e.deadline-7, deadline)
		}
	}
}

// A server walks to a place in the middle of a long queue.
func TestOverdueWaitersAreReadInParts(t *testing.T) {
	t.Parallel()
	const n = 2500
	c := newTimedQueue(t, n)
	for _, alive := range []int{1, 2, 1000, 1001, 1002, 2001, n - 1} { // the first that is, once the first has left
		c.fill()
		c.do("ZADD", c.keys[2], t0+900_000, c.all[alive].owner)
		c.do("CONFIG", "RESETSTAT")
		var call transport.Call
		c.lock.GiveUp(&call, t0+500_000, c.all[0].owner, 0)
		require.Nil(t, c.do("EVAL", append([]any{call.Script.Text(), call.NumKeys}, call.Args...)...))
		stats := c.server.CommandStats(t)
		require.Equal(t, int64(alive), stats["publish"])
		require.LessOrEqual(t, stats["lindex"]+stats["lrange"], int64(40))
	}
}

type timedQueue struct {
	t      *testing.T
	server *redistest.Server
	conn   redis.Conn
	keys   []any // lock, queue, timeouts
	lock   *Fair
	all    []entry
	now    int64
}

func newTimedQueue(t *testing.T, queued int64) *timedQueue {
	t.Helper()
	server := redistest.Start(t)
	c := &timedQueue{t: t, server: server, conn: server.Dial(t), all: entriesFrom(queued, t0+20000), now: t0}
	c.keys, c.lock = []any{"orders", codec.QueueKey("orders"), codec.TimeoutKey("orders")}, fairLock("orders", "PUBLISH")
	c.fill()
	return c
}

func (c *timedQueue) fill() {
	push, add := []any{c.keys[1]}, []any{c.keys[2]}
	for _, s := range c.all {
		push, add = append(push, s.owner), append(add, s.deadline, s.owner)
	}
	c.do("DEL", c.keys[1], c.keys[2])
	c.do("RPUSH", push...)
	c.do("ZADD", add...)
}

func (c *timedQueue) do(command string, args ...any) any {
	c.t.Helper()
	reply, err := c.conn.Do(command, args...)
	require.NoError(c.t, err)
	return reply
}

func (c *timedQueue) beat(mine []entry, step int64) func(call *transport.Call) {
	return func(call *transport.Call) {
		c.now += step
		var owners []waiter
		var others []reply.Other
		for _, e := range mine {
			owners = append(owners, waiter{e.owner, 1})
		}
		for _, e := range c.all[:min(64, len(c.all))] {
			others = append(others, reply.Other{Owner: e.owner, Wait: 1, Living: true})
		}
		fillBeat(c.lock, call, c.now, Beat{Keep: fairKeep, FairWait: fairWait, Window: 64}, owners, others)
	}
}

// evict evicts the first owners from a full queue.
func (c *timedQueue) evict(dead int) func(call *transport.Call) {
	return func(call *transport.Call) {
		c.fill()
		var places []reply.Place
		for _, s := range c.all[:dead] {
			places = append(places, reply.Place{Owner: s.owner, Deadline: strconv.FormatInt(s.deadline, 10)})
		}
		c.lock.Evict(call, t0, fairKeep, places)
	}
}

func TestThousandWaiterHeartbeatRunsFewCommands(t *testing.T) {
	t.Parallel()
	c := newTimedQueue(t, 1000)
	c.do("HSET", c.keys[0], a9, "1")
	for _, step := range []struct {
		does string
		most int64 // commands, of which 64 read the deadlines that it returns, or that it evicts
		fill func(call *transport.Call)
	}{
		{"a heartbeat of one waiter moves none", 10 + 64, c.beat(c.all[:1], 0)},
		{"a heartbeat of a thousand moves none", 10 + 64, c.beat(c.all, 0)},
		{"a heartbeat of one waiter moves all", 10 + 64, c.beat(c.all[:1], 30000)},
		{"a heartbeat of a thousand moves all", 10 + 64, c.beat(c.all, 30000)},
		{"an eviction of one waiter moves all", 12, c.evict(1)},
		{"an eviction of 64 that moves all", 8 + 4*64, c.evict(64)},
		{"a nudge", 3, func(call *transport.Call) { c.lock.Nudge(call, c.all[0].owner) }},
	} {
		var call transport.Call
		step.fill(&call)
		c.do("SCRIPT", "LOAD", call.Script.Text())
		c.do("CONFIG", "RESETSTAT")
		c.do("EVALSHA", append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)...)
		var ran int64
		for name, n := range c.server.CommandStats(t) {
			if name != "evalsha" && !strings.HasPrefix(name, "config") && name != "info" {
				ran += n
			}
		}
		require.LessOrEqual(t, ran, step.most, step.does)
		require.Positive(t, ran, step.does)
	}
}

// A user without permission for the fast commands gets the same result from slow ones.
func TestManyDeadlinesMoveTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lacks  string
		queued int64
		moves  string
	}{
		{"", 100, "zunionstore"}, {"", 5, "zunionstore"}, {"", 4, "zincrby"},
		{"-sadd", 100, "zincrby"}, {"-zunionstore", 100, "zincrby"},
	} {
		for name, take := range map[string]func(f *fairPlayer, owner string, now, wait int64) *fairPlayer{
			"try": (*fairPlayer).try, "acquire": (*fairPlayer).acquire,
		} {
			t.Run(fmt.Sprint(name, c.lacks, c.queued), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				server.Do(t, "ACL", "SETUSER", "caller", "on", "nopass", "~*", "&*", "+@all")
				if c.lacks != "" {
					server.Do(t, "ACL", "SETUSER", "caller", c.lacks)
				}
				s := newQuietStage(t, server)
				_, err := s.conn.Do("AUTH", "caller", "any")
				require.NoError(t, err)
				f := s.newFairPlayer()
				f.enqueue(append([]entry{in(a1, 0)}, entriesFrom(c.queued, t0+10)...)...)
				server.Do(t, "CONFIG", "RESETSTAT")
				take(f, a1, -1, fairWait)
				require.NoError(t, f.err)
				want := int64(1)
				if c.moves == "zincrby" {
					want = c.queued
				}
				require.Equal(t, want, server.CommandStats(t)[c.moves])

				// Only the client sets a TTL on the deadlines, and only it removes one.
				timeouts := codec.TimeoutKey(f.l)
				server.Do(t, "DEL", f.l)
				server.Do(t, "PEXPIRE", timeouts, 1_000_000)
				_, err = s.run(filled(func(call *transport.Call) {
					fairLock(f.l, "PUBLISH").Try(call, t0-1_000_000, "waiter 0", 1, fairLease)
				}))
				require.NoError(t, err)
				require.EqualValues(t, 1, server.Do(t, "EXISTS", f.l))
				left, _ := server.Do(t, "PTTL", timeouts).(int64)
				require.InDelta(t, 970_000, left, 30_000)
			})
		}
	}
}
