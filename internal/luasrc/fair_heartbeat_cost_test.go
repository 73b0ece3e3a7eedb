package luasrc

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

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
	server := redistest.Start(t, redistest.WithArgs("--slowlog-log-slower-than", "0", "--slowlog-max-len", "1"))
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

// times returns the least and the median time of the script by the server's clock.
func (c *timedQueue) times(script *transport.Script, fill func(call *transport.Call)) (least, median time.Duration) {
	c.t.Helper()
	c.do("SCRIPT", "LOAD", script.Text())
	var spent []time.Duration
	for range testlevel.Rounds(11, 51) {
		var call transport.Call
		fill(&call)
		require.Equal(c.t, script, call.Script)
		c.do("EVALSHA", append([]any{script.SHA(), call.NumKeys}, call.Args...)...)
		entries, err := redis.SlowLogs(c.do("SLOWLOG", "GET", 1), nil)
		require.NoError(c.t, err)
		require.Len(c.t, entries, 1)
		require.Equal(c.t, "EVALSHA", entries[0].Args[0], "the last that was noted")
		spent = append(spent, entries[0].ExecutionTime)
	}
	slices.Sort(spent)
	return spent[0], spent[len(spent)/2]
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

// On an idle machine the medians are a tenth of the bound or less.
func TestHeartbeatOfAThousandWaitersTakesLittleTimeOfTheServer(t *testing.T) {
	t.Parallel()
	c := newTimedQueue(t, 1000)
	c.do("HSET", c.keys[0], a9, "1")
	for _, step := range []struct {
		does   string
		script *transport.Script
		fill   func(call *transport.Call)
	}{
		{"a heartbeat of one that moves none", FairHeartbeat, c.beat(c.all[:1], 0)},
		{"a heartbeat of a thousand that moves none", FairHeartbeat, c.beat(c.all, 0)},
		{"a heartbeat of one that moves all", FairHeartbeat, c.beat(c.all[:1], 30000)},
		{"a heartbeat of a thousand that moves all", FairHeartbeat, c.beat(c.all, 30000)},
		{"an eviction of one that moves all", FairEvict, c.evict(1)},
		{"an eviction of 64 that moves all", FairEvict, c.evict(64)},
	} {
		least, median := c.times(step.script, step.fill)
		t.Logf("%v, at least %v: %s", median, least, step.does)
		require.Less(t, least, 30*time.Millisecond, step.does)
	}
	c.do("DEL", c.keys[0])
	c.fill()
	least, median := c.times(FairNudge, func(call *transport.Call) { c.lock.Nudge(call, c.all[0].owner) })
	t.Logf("%v, at least %v: a nudge", median, least)
	require.Less(t, least, 30*time.Millisecond)
	require.Equal(t, "1000", fmt.Sprint(c.do("LLEN", c.keys[1])))
}
