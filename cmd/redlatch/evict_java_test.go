package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// evictTries is the number of queues of each kind. The best results must be within nextWithin:
	// a machine or a JVM may pause. Redlatch polls about once a second, so two of its results must
	// be that fast.
	evictTries = 3
	nextWithin = time.Second
)

// deadHead is a fair lock whose queue begins with a dead thread of Java.
type deadHead struct {
	*fixture
	name  string
	owner string
	free  func() error
	// next releases the next owner's lock, and returns when it was acquired by the owner's clock.
	next func(t *testing.T) time.Time
}

// testEvict kills a Java process whose threads are first in queues. status names them, and evict
// wakes the next owner, which acquires the lock within a second. Deadlines and graces are minutes
// away.
func (f *fixture) testEvict(t *testing.T, release string) {
	t.Helper()
	p := startJava(t, release)
	doomed := f.newJava(t, p, nil)
	var ours, java [evictTries]*deadHead
	for i := range evictTries {
		ours[i] = f.queueBehind(t, doomed, fmt.Sprintf("next-ours-%d", i+1), (*deadHead).waitOurs)
		java[i] = f.queueBehind(t, doomed, fmt.Sprintf("next-java-%d", i+1), (*deadHead).waitJava)
	}
	held := f.queueBehind(t, doomed, "held", (*deadHead).waitJava)
	p.Halt()
	for _, q := range slices.Concat(ours[:], java[:]) {
		q.dies(t)
		require.NoError(t, q.free())
	}
	held.dies(t)
	named(t, "next-ours", ours)
	named(t, "next-java", java)
	for _, c := range []struct {
		what   string
		queues [evictTries]*deadHead
		fast   int
	}{{"next-ours", ours, 2}, {"next-java", java, 1}} {
		took := make([]time.Duration, evictTries)
		for i, q := range c.queues {
			took[i] = q.evict(t, "evict-"+c.what, i)
		}
		t.Logf("Redisson %s, %s: the lock is taken %v after the end of evict", release, c.what, took)
		slices.Sort(took)
		require.Less(t, took[c.fast-1], nextWithin)
	}
	held.evictHeld(t)
	require.Zero(t, f.evicted.Load(), "the client that waits has evicted a waiter by itself")
}

// queueBehind queues a doomed thread for a lock that is held here, and the next waiter behind it.
func (f *fixture) queueBehind(t *testing.T, doomed *javaClient, name string, next func(*deadHead, *testing.T)) *deadHead {
	t.Helper()
	hold, err := rfairlock.New(f.client, name).Lock(t.Context(), rlock.WithLease(time.Hour))
	require.NoError(t, err)
	q := &deadHead{fixture: f, name: name, free: hold.Unlock}
	doomed.begin(peer.Command{"op": "lock", "kind": "fair", "name": name, "thread": name})
	q.owner = q.last(t, 1)
	next(q, t)
	q.last(t, 2)
	return q
}

func (q *deadHead) last(t *testing.T, want int) (owner string) {
	t.Helper()
	require.Eventually(t, func() bool {
		queue := program.QueueOf(t, q.server, q.name)
		if len(queue) != want {
			return false
		}
		owner = queue[want-1]
		return q.listens(t, owner)
	}, 2*program.Soon, program.PollEvery)
	return owner
}

func (q *deadHead) listens(t *testing.T, owner string) bool {
	t.Helper()
	counts, err := redis.Values(q.server.Do(t, "PUBSUB", "NUMSUB", codec.OwnerChannel(q.name, owner)), nil)
	require.NoError(t, err)
	return counts[1] == int64(1)
}

func (q *deadHead) waitOurs(t *testing.T) {
	t.Helper()
	type grant struct {
		at   time.Time
		hold *rlock.Hold
	}
	granted := make(chan grant, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		hold, err := rfairlock.New(q.client, q.name).Lock(t.Context())
		if err == nil {
			granted <- grant{time.Now(), hold}
		}
	}()
	t.Cleanup(func() { <-over })
	q.next = func(t *testing.T) time.Time {
		t.Helper()
		select {
		case g := <-granted:
			require.NoError(t, g.hold.Unlock())
			return g.at
		case <-time.After(program.Soon):
			require.FailNow(t, "the next in the queue still waits", q.name)
			return time.Time{}
		}
	}
}

func (q *deadHead) waitJava(t *testing.T) {
	t.Helper()
	about := peer.Command{"kind": "fair", "name": q.name, "thread": q.name}
	call := q.java.begin(about.With(peer.Command{"op": "lock"}))
	q.next = func(t *testing.T) time.Time {
		t.Helper()
		reply, err := call.Wait(program.Soon)
		require.NoError(t, err, "the next in the queue still waits: %s", q.name)
		q.java.do(t, about.With(peer.Command{"op": "unlock"}))
		return reply.Ended()
	}
}

func (q *deadHead) dies(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !q.listens(t, q.owner) }, program.Soon, program.PollEvery)
	require.Equal(t, q.owner, program.QueueOf(t, q.server, q.name)[0])
}

func named(t *testing.T, what string, queues [evictTries]*deadHead) {
	t.Helper()
	var reported [evictTries]*program.Process
	for i, q := range queues {
		args := []string{"status", q.name}
		if i > 0 {
			args = append(args, "--json")
		}
		reported[i] = program.Start(t, q.server.URL(), args...)
	}
	for i, q := range queues {
		text := reported[i].Outcome(2 * program.Soon).Stdout
		if i == 0 {
			require.Contains(t, program.Words(text), "note the first in the queue, "+q.owner+" (Redisson), has had no subscriber for ")
			q.checkOutput(t, "status-"+what, text)
			continue
		}
		var as struct {
			Queue []struct {
				DeadlineMillis *int64 `json:"deadline_in_ms"`
			}
			Why *struct{ Reason, Owner string } `json:"why_free"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &as))
		require.Equal(t, "no_subscriber", as.Why.Reason)
		require.Equal(t, q.owner, as.Why.Owner)
		require.Greater(t, *as.Queue[0].DeadlineMillis, time.Minute.Milliseconds())
		if i == 1 {
			q.checkOutput(t, "status-"+what+".json", firstFor.ReplaceAllString(text, `"$1": 1000`))
		}
	}
}

func (q *deadHead) evict(t *testing.T, file string, i int) time.Duration {
	t.Helper()
	args := []string{"evict", q.name, q.owner}
	if i == 1 {
		args, file = append(args, "--json"), file+".json"
	}
	require.Equal(t, q.owner, program.QueueOf(t, q.server, q.name)[0])
	require.False(t, program.Exists(t, q.server, q.name), "the lock was taken although a dead one is first")
	got := program.Finish(t, q.server.URL(), args...)
	over := time.Now()
	require.Equal(t, 0, got.Code, got.Stderr)
	took := q.next(t).Sub(over)
	if i < 2 {
		q.checkOutput(t, file, got.Stdout)
	}
	return took
}

func (q *deadHead) evictHeld(t *testing.T) {
	t.Helper()
	got := program.Finish(t, q.server.URL(), "status", q.name)
	require.Contains(t, got.Stdout, "      1  "+q.owner, got.Stderr)
	require.Contains(t, got.Stdout, "\n         subscribed no, Redisson\n")
	q.checkOutput(t, "evict-held", program.OK(t, q.server.URL(), "evict", q.name, q.owner))
	require.NoError(t, q.free())
	freed := time.Now()
	took := q.next(t).Sub(freed)
	t.Logf("after a release %v", took)
}
