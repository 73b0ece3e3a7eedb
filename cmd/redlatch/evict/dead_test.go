package evict_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestEvictTakesAllDeadWaitersOutAndWakesTheFirstLiveOne(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		for _, owner := range []string{program.LongOwner(1), program.LongOwner(2), program.RedlatchOwner, program.LongOwner(3)} {
			program.Enqueue(t, s, name, owner, time.Hour)
		}
		program.Listen(t, s, name, program.RedlatchOwner)
		got := program.Finish(t, s.URL(), "evict", "--all-dead", "--for", "100ms", name)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.Contains(t, got.Stdout, `lock "`+name+`": 3 waiters were evicted from the queue`)
		for _, line := range []string{
			"  owner  " + program.LongOwner(1) + "\n         Redisson, place 1, subscribed no,", ", place 2,", ", place 4,",
			"  next   " + program.RedlatchOwner + "\n         Redlatch since " + program.RedlatchSince + ", subscribed yes, woken: the lock\n         is free\n",
		} {
			require.Contains(t, got.Stdout, line)
		}
		require.Equal(t, []string{program.RedlatchOwner}, program.QueueOf(t, s, name))

		got = program.Finish(t, s.URL(), "evict", "--all-dead", "--for", "0s", name)
		require.Equal(t, program.Outcome{Code: 0, Stdout: `lock "` + name + `": no waiter was evicted: each has a subscriber` + "\n", Stderr: ""}, got)
	})
}

// No command is longer the longer the queue is, and there are fewer commands than waiters. It is not
// parallel: other tests would make the machine busier.
func TestEvictOfALongDeadQueueIsNoBurden(t *testing.T) {
	s := redistest.Start(t)
	const name, waiting = "billing-run", 3000
	program.LongQueue(t, s, name, program.SomeOwner, waiting)
	slow, before := program.WatchSlow(t, s, 5*time.Millisecond), s.CommandStats(t)["evalsha"]
	got := program.Finish(t, s.URL(), "evict", "--all-dead", "--for", "0s", "--json", name)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Less(t, s.CommandStats(t)["evalsha"]-before, int64(waiting/10))
	require.Empty(t, slow())
	var reported struct {
		Evicted []struct {
			Owner    string
			Position int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported))
	require.Len(t, reported.Evicted, waiting)
	for i, e := range reported.Evicted {
		require.Equal(t, program.LongOwner(i), e.Owner)
		require.Equal(t, i+1, e.Position)
	}
	require.Empty(t, program.QueueOf(t, s, name))
}

func TestEvictReadsAPartOfALongQueueAtATime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name, waiting = "billing-run", 5000
	program.LongQueue(t, s, name, program.SomeOwner, waiting)
	longest := program.WatchReads(t, s, waiting)
	for _, c := range []struct {
		args  []string
		bound int
	}{
		{[]string{name, program.LongOwner(waiting - 2)}, 1100},
		{[]string{name, program.LongOwner(0)}, waiting + 1000}, // all deadlines change
		{[]string{"--all-dead", "--for", "0s", name}, 2000},    // twice a thousand deadlines, behind the first
	} {
		got := program.Finish(t, s.URL(), append([]string{"evict"}, c.args...)...)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.LessOrEqual(t, longest(), c.bound, "%v", c.args)
	}
	require.Empty(t, program.QueueOf(t, s, name))
}

func TestEvictPrintsAllDeadAsJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	got := program.Finish(t, s.URL(), "evict", "--all-dead", "--for", "0s", "--json", name)
	require.Equal(t, 0, got.Code, got.Stderr)
	var reported map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported))
	require.Nil(t, reported["next"])
	require.InDelta(t, 0, reported["queue_length"], 0)
	require.Equal(t, program.RedissonOwner, reported["evicted"].([]any)[0].(map[string]any)["owner"])
	require.Contains(t, program.Finish(t, s.URL(), "evict", "--all-dead", name).Stdout, "no waiter was evicted: the queue is empty")
}

// A waiter that reconnects has no subscriber for a moment.
func TestEvictAllDeadLooksTwice(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	p := program.Start(t, s.URL(), "evict", "--all-dead", "--for", "8s", name)
	time.AfterFunc(time.Second, func() { program.Listen(t, s, name, program.RedissonOwner) })
	got := p.Outcome(2 * program.Soon)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "no waiter was evicted")
	require.Equal(t, []string{program.RedissonOwner}, program.QueueOf(t, s, name))
}

func TestEvictAllDeadRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "blind", "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
	for _, c := range []struct {
		url, says string
		args      []string
	}{
		{s.URL(), "contradict each other", []string{"--all-dead", "--even-if-alive", "job"}},
		{s.URL(), "--for goes with --all-dead", []string{"--for", "1s", "job", program.RedissonOwner}},
		{s.URL(), "must not be negative", []string{"--all-dead", "--for", "-1s", "job"}},
		{s.UserURL("blind"), "which waiters are dead is unknown: ", []string{"--all-dead", "job"}},
	} {
		got := program.Finish(t, c.url, append([]string{"evict"}, c.args...)...)
		code := 2
		if c.url != s.URL() {
			code = 1 // it was looked at
		}
		require.Equal(t, code, got.Code, c.says)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, c.says)
	}
	require.EqualValues(t, 1, s.Do(t, "LLEN", codec.QueueKey("job")))
}
