package rfairlock

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// queueCalls sends what the protocol answers for the queue of one lock.
type queueCalls struct {
	t      *testing.T
	target redistest.Target
	engine *engine.Engine
	fair   *kind.Fair
}

func newQueueCalls(t *testing.T, target redistest.Target) queueCalls {
	t.Helper()
	client, err := redlatch.Open(t.Context(), target.URL(), redlatch.WithFairWaitTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	e := engine.EngineOf(client)
	return queueCalls{t, target, e, kind.NewFair(e, redistest.Key(t))}
}

// send runs a call and returns its reply.
func (q queueCalls) send(fill func(c *transport.Call)) any {
	q.t.Helper()
	type answer struct {
		reply any
		err   error
	}
	answered := make(chan answer, 1)
	call := &transport.Call{}
	fill(call)
	q.engine.Transport.Start(call, func(reply any, err error) { answered <- answer{reply, err} })
	a := <-answered // the transport ends every call
	require.NoError(q.t, a.err)
	return a.reply
}

func (q queueCalls) beat(alive string, window int, waiters ...fairqueue.Waiter) reply.Beat {
	q.t.Helper()
	b, err := reply.DecodeBeat(q.send(func(c *transport.Call) {
		q.fair.Heartbeat(c, window, waiters, []reply.Other{{Owner: alive, Living: true}})
	}))
	require.NoError(q.t, err)
	return b
}

func (q queueCalls) evict(dead ...reply.Place) []string {
	q.t.Helper()
	owners, err := reply.DecodeEvicted(q.send(func(c *transport.Call) { q.fair.Evict(c, dead) }))
	require.NoError(q.t, err)
	return owners
}

func (q queueCalls) nudge(owner string) bool {
	q.t.Helper()
	reported, err := reply.Nudged(q.send(func(c *transport.Call) { q.fair.Nudge(c, owner) }))
	require.NoError(q.t, err)
	return reported
}

func (q queueCalls) sit(owner string, deadline time.Time) {
	q.target.Do(q.t, "RPUSH", codec.QueueKey(q.fair.Key()), owner)
	q.target.Do(q.t, "ZADD", codec.TimeoutKey(q.fair.Key()), deadline.UnixMilli(), owner)
}

// requireAbout holds that a place ends so much later than now, give or take what a
// busy machine needs.
func (q queueCalls) requireAbout(want time.Duration, p reply.Place) {
	q.t.Helper()
	ms, err := strconv.ParseInt(p.Deadline, 10, 64)
	require.NoError(q.t, err)
	require.WithinDuration(q.t, time.Now().Add(want), time.UnixMilli(ms), 10*time.Second)
}

func TestQueueCallsDoWhatTheProtocolSays(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		q := newQueueCalls(t, target)
		now := time.Now()
		q.sit("them:1", now.Add(time.Hour))
		q.sit("us:1", now.Add(time.Second))
		q.sit("us:2", now.Add(2*time.Second))
		ours := []fairqueue.Waiter{{Owner: "us:1", Wait: int64(90_000)}, {Owner: "us:2", Wait: int64(5)}, {Owner: "us:3", Wait: int64(5)}}

		b := q.beat("", 3, ours...)
		require.Equal(t, []string{"us:3"}, b.Missing)
		require.EqualValues(t, -2, b.Left)
		require.EqualValues(t, 3, b.Length)
		require.Len(t, b.Front, 3)
		require.Equal(t, reply.Place{Owner: "them:1", Deadline: strconv.FormatInt(now.Add(time.Hour).UnixMilli(), 10)}, b.Front[0])
		q.requireAbout(15*time.Second+time.Minute, b.Front[1]) // the first counts as one that waits a minute
		q.requireAbout(15*time.Second+time.Minute+90*time.Second, b.Front[2])
		require.Len(t, q.beat("", 2).Front, 2)

		require.False(t, q.nudge("us:1"))
		require.True(t, q.nudge("them:1"))
		require.Equal(t, []string{"them:1"}, q.evict(b.Front[0]))
		require.Empty(t, q.evict(b.Front[0]))
		left := q.beat("", 1)
		require.Equal(t, "us:1", left.Front[0].Owner)
		require.NotEqual(t, b.Front[1].Deadline, left.Front[0].Deadline, "what they had too much was taken off")

		target.Do(t, "HSET", q.fair.Key(), "somebody", 1)
		target.Do(t, "ZADD", codec.TimeoutKey(q.fair.Key()), now.UnixMilli(), "us:1")
		q.requireAbout(0, q.beat("us:2", 1).Front[0])
		q.requireAbout(time.Minute, q.beat("us:1", 1).Front[0])
		require.False(t, q.nudge("us:1"))
	})
}

// The channel of an eviction or a nudge is the channel that the waiter
// listens to.
func TestEvictionsAndNudgesReachTheWaiterOnItsChannel(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		q := newQueueCalls(t, target)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		owner := any("us:1")
		require.Equal(t, q.fair.Channel(owner), q.fair.Channel("us:1"))
		sub, err := q.engine.Transport.Subscribe(ctx, q.fair.Channel("us:1"))
		require.NoError(t, err)
		defer sub.Close()
		woken := func(by string) {
			select {
			case event := <-sub.Events():
				require.Equal(t, codec.MessageUnlock, event.Payload, by)
			case <-ctx.Done():
				require.FailNow(t, "not woken", by)
			}
		}
		q.target.Do(t, "RPUSH", codec.QueueKey(q.fair.Key()), "dead")
		q.sit("us:1", time.Now().Add(time.Hour))
		require.Equal(t, []string{"dead"}, q.evict(reply.Place{Owner: "dead"}))
		woken("by the eviction")
		require.True(t, q.nudge("us:1"))
		woken("by the nudge")
	})
}
