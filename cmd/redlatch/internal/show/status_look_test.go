package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlock"
)

var errNotCountable = fmt.Errorf("%w: %w", admin.ErrNotCounted, errors.New("not\ncountable"))

func TestStatusExplainsUnclaimedFreeLock(t *testing.T) {
	t.Parallel()
	second := codec.NewOwner(program.ClientID, 2).String()
	for what, c := range map[string]struct {
		owner         string
		deadline      time.Duration
		listens, help bool // the first waiter listens; a Redlatch client waits behind it
		reason, says  string
	}{
		"dead": {
			program.RedissonOwner, time.Hour, false, false, whyAbsent,
			program.RedissonOwner + ` (Redisson), has had no subscriber for 1s: if it is dead, it blocks the lock for 59m59s more; ` +
				"no Redlatch client, which would evict it, is waiting: use `redlatch evict --all-dead job`; 2 have no subscriber",
		},
		"dead with help": {
			program.RedlatchOwner, time.Hour, false, true, whyAbsent,
			program.RedlatchOwner + ` (Redlatch), has had no subscriber for 1s: if it is dead, it blocks the lock for 59m59s more, ` +
				`unless a waiting Redlatch client, as at place 2, evicts it`,
		},
		"dead forever": {
			"first:1", 0, false, false, whyAbsent,
			"first:1, has had no subscriber for 1s, and no deadline: if it is dead, it blocks the lock forever; no Redlatch client, which would evict it, is waiting: " +
				"use `redlatch evict --all-dead job`; 2 have no subscriber",
		},
		"overdue": {
			program.RedissonOwner, -time.Second, true, false, whyOverdue,
			program.RedissonOwner + ` (Redisson), is past its deadline by this machine's clock: the next request for the lock removes it, but none came for 1s`,
		},
		"alive": {
			program.RedissonOwner, time.Hour, true, false, whySubscribed,
			program.RedissonOwner + ` (Redisson), is subscribed, but has not acquired the lock for 1s: it will when notified, or at its next poll; ` +
				"if that takes longer than 10s, its process is probably stopped or hangs: use `redlatch evict --even-if-alive job " + program.RedissonOwner + "`",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, _ := watchInBubble(t, question{look: aMoment}, func(t *testing.T, s redistest.Target, _ *redlatch.Client) {
				t.Helper()
				program.Enqueue(t, s, "job", c.owner, c.deadline)
				program.Enqueue(t, s, "job", second, time.Hour)
				if c.listens {
					program.Listen(t, s, "job", c.owner)
				}
				if c.help {
					program.Listen(t, s, "job", second)
				}
			})
			require.Equal(t, "the first in the queue, "+c.says, got.Note)
			require.Equal(t, c.reason, got.Why.Reason)
			require.Equal(t, c.owner, got.Why.Owner)
			require.Equal(t, inspect.ClientOf(c.owner), got.Why.Client)
			require.Equal(t, aMoment.Milliseconds(), got.Why.FirstMillis, "it was looked at for a moment")
			require.Equal(t, c.listens, got.Why.AbsentMillis == nil)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.Contains(t, string(text), `"why_free":{"reason":"`+c.reason+`","owner":"`+c.owner+`","client":"`)
			require.Contains(t, string(text), `"first_for_ms":1000,"no_subscriber_for_ms":`)
			var out strings.Builder
			got.print(&out)
			require.Contains(t, out.String(), "lock \"job\" is free\n  queue  2 waiting\n")
			require.Contains(t, program.Words(out.String()), " note the first in the queue, "+c.says)
			program.Narrow(t, out.String())
		})
	}
}

// watchInBubble calls prepare and returns the status of a lock on an in-memory server in a bubble.
func watchInBubble(t *testing.T, q question, prepare func(*testing.T, redistest.Target, *redlatch.Client)) (got *status, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(s.Server.Dial)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		prepare(t, s, client)
		began := time.Now()
		q.name = "job"
		got, err = q.watch(t.Context(), client)
		require.NoError(t, err)
		took = time.Since(began)
	})
	return got, took
}

func TestStatusObservesForGivenTime(t *testing.T) {
	t.Parallel()
	got, took := watchInBubble(t, question{look: 40 * time.Second}, func(t *testing.T, s redistest.Target, _ *redlatch.Client) {
		t.Helper()
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
	})
	require.InDelta(t, 40, took.Seconds(), 0.1)
	require.Equal(t, whyAbsent, got.Why.Reason)
	require.InDelta(t, 40_000, got.Why.FirstMillis, 100)
	require.InDelta(t, 40_000, *got.Why.AbsentMillis, 100)
	require.Contains(t, got.Note, "has had no subscriber for 40s: if it is dead, it blocks the lock for 59m20s more")
}

func TestStatusForStopsAtRenewal(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		q    question
		took time.Duration
		hold func(*testing.T, redistest.Target, *redlatch.Client)
	}{
		"TIME left, renewed": {question{look: time.Minute, lease: true}, 10 * time.Second, func(t *testing.T, _ redistest.Target, client *redlatch.Client) {
			t.Helper()
			_, err := rlock.New(client, "job").Lock(t.Context(), rlock.WithWatchdog(30*time.Second))
			require.NoError(t, err)
		}},
		"TIME left, not renewed when due: fixed, or the holder is gone": {question{look: time.Minute, lease: true}, 11 * time.Second, fixed},
		"TIME left, fixed or renewed (--for 12s would show)":            {question{look: 15 * time.Second}, 0, fixed},
	} {
		got, took := watchInBubble(t, c.q, c.hold)
		require.InDelta(t, c.took.Seconds(), took.Seconds(), 1.1, want)
		require.Equal(t, want, regexp.MustCompile(`^\S+`).ReplaceAllString(got.leaseText(), "TIME"))
	}
}

// fixed holds the lock with a lease that is not renewed.
func fixed(t *testing.T, s redistest.Target, _ *redlatch.Client) {
	t.Helper()
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "job", 30_000)
}

func TestStatusReportsLockAcquiredDuringObservation(t *testing.T) {
	t.Parallel()
	got, took := watchInBubble(t, question{look: time.Minute}, func(t *testing.T, s redistest.Target, _ *redlatch.Client) {
		t.Helper()
		program.Enqueue(t, s, "job", program.RedissonOwner, time.Hour)
		time.AfterFunc(10*time.Second, func() {
			s.Do(t, "HSET", "job", program.RedissonOwner, 1)
			s.Do(t, "DEL", codec.QueueKey("job"))
		})
	})
	require.InDelta(t, 10, took.Seconds(), 1.1)
	require.True(t, got.Held)
	require.Nil(t, got.Why)
}

func TestAbsenceNeverExceedsObservation(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var v absence
	first := &inspect.Waiter{Owned: inspect.OwnedBy("a"), Subscribed: "no"}
	v.observe(first, at(0), at(10))
	v.observe(first, at(1000), at(1010))
	require.Equal(t, absence{"a", at(0), at(10)}, v)
	first.Subscribed = "unknown"
	v.observe(first, at(2000), at(2010))
	require.Equal(t, absence{"a", at(0), time.Time{}}, v)
	first.Subscribed = "no"
	v.observe(first, at(3000), at(3010))
	require.Equal(t, absence{"a", at(0), at(3010)}, v)
	v.observe(&inspect.Waiter{Owned: inspect.OwnedBy("b"), Subscribed: "yes"}, at(4000), at(4010))
	require.Equal(t, absence{"b", at(4000), time.Time{}}, v)
}

func TestWaiterNotCountedOnAllNodesIsNotAbsent(t *testing.T) {
	t.Parallel()
	queue := func() *status {
		return &status{Queue: []inspect.Waiter{{Subscribed: "yes"}, {Subscribed: "no"}, {Subscribed: "unknown"}}}
	}
	reported := func(s *status) (all []string) {
		for _, q := range s.Queue {
			all = append(all, q.Subscribed)
		}
		return all
	}
	s := queue()
	s.record(s.Queue, nil, errNotCountable)
	require.Equal(t, []string{"yes", "unknown", "unknown"}, reported(s))
	require.Equal(t, "not; countable", s.Uncounted)
	s = queue()
	s.record(s.Queue, []int64{0, 2}, nil)
	require.Equal(t, []string{"no", "yes", "unknown"}, reported(s))
	require.Empty(t, s.Uncounted)
}

func TestStatusNamesClientLibrary(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name = "billing-run"
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Enqueue(t, s, name, codec.NewOwner(program.ClientID, 2).String(), time.Hour)
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "a label that is so long that it does not fit on one line beside what else there is")
	holder, err := codec.ParseOwner(program.SomeOwner)
	require.NoError(t, err)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), program.LabelText)
	got := program.Finish(t, s.URL(), "status", name)
	require.Contains(t, got.Stdout, "\n         Redlatch since "+program.RedlatchSince+", label \""+program.LabelText+"\"\n")
	require.Contains(t, got.Stdout, `, label "a label that is so long that it does not fit on one line beside what else there is"`+"\n")
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"label": "`+program.LabelText+`"`)
	list := program.Finish(t, s.URL(), "list").Stdout
	program.Fits(t, list)
	require.Regexp(t, `(?m)^billing-run +fair +`+program.LabelText+` +1 +none +2$`, list)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), "import.sh@ip-10-0-0-12.eu-west-1.example pid 4711")
	list = program.Finish(t, s.URL(), "list").Stdout
	program.Fits(t, list)
	require.Regexp(t, `fair +import\.sh@ip-10-0-0-12\.eu-\.\. +1`, list)
	require.Contains(t, list, "\n  label  import.sh@ip-10-0-0-12.eu-west-1.example pid 4711\n")

	s.Do(t, "SET", engine.LabelKey(program.ClientID), "\x1b[2J")
	require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, `label "\x1b[2J"`)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), "\x1b[2J")
	require.NotContains(t, program.Finish(t, s.URL(), "list").Stdout, "\x1b")
	require.NotContains(t, program.Start(t, s.URL(), "watch", name).Line(), "\x1b")
}

// announceWait announces again and again that a wait inside the holds of owner is for a lock.
func announceWait(t *testing.T, s *redistest.Server, owner, lock string) {
	t.Helper()
	c := s.Dial(t)
	announce := func(n int) error {
		_, err := c.Do("SET", engine.NestedKey(owner), fmt.Sprintf(engine.NestedFormat, program.ClientID, 1, n, "plain", lock))
		return err
	}
	require.NoError(t, announce(1))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 2; inspect.Pause(ctx, 20*time.Millisecond) == nil; n++ {
			_ = announce(n)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestDeadlockNamesEachWait(t *testing.T) {
	t.Parallel()
	s := deadlockedByNestedWait(t)
	announceWait(t, s, program.RedissonOwner, "a")
	requireDeadlockNamed(t, s)
}

func TestDeadlockNamesQueuedWait(t *testing.T) {
	testlevel.All(t, "places in queues are observed for five seconds")
	t.Parallel()
	s := deadlockedByNestedWait(t)
	program.Enqueue(t, s, "a", program.RedissonOwner, time.Hour)
	require.NotContains(t, program.Finish(t, s.URL(), "status", "a").Stdout, "deadlock", "the thread is dead")
	program.Listen(t, s, "a", program.RedissonOwner)
	requireDeadlockNamed(t, s)
}

// deadlockedByNestedWait starts a server with two locks, whose holders wait for each other's lock if b's holder waits
// for a.
func deadlockedByNestedWait(t *testing.T) *redistest.Server {
	t.Helper()
	s := redistest.Start(t)
	holder, err := codec.ParseOwner(program.SomeOwner)
	require.NoError(t, err)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), "evil\x1b[2J")
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	s.Do(t, "HSET", "b", program.RedissonOwner, 1)
	announceWait(t, s, program.SomeOwner, "b")
	program.Subscribe(t, s, codec.LockChannel("a"), codec.LockChannel("b"))
	return s
}

func requireDeadlockNamed(t *testing.T, s *redistest.Server) {
	t.Helper()
	first := `"evil\x1b[2J" (` + program.SomeOwner + `) holds a, waits for b, held by ` + program.RedissonOwner
	second := program.RedissonOwner + ` holds b, waits for a, held by "evil\x1b[2J" (` + program.SomeOwner + `)`
	scans := func(args ...string) (string, int64) {
		before := s.CommandStats(t)["scan"]
		text := program.Finish(t, s.URL(), args...).Stdout
		return text, s.CommandStats(t)["scan"] - before
	}
	one, searched := scans("status", "--json", "a")
	require.Contains(t, one, `"deadlock": [`)
	got, again := scans("status", "a", "b", "c")
	require.Equal(t, searched, again, "one search for all names")
	said := "  deadlock, until one of these waits or leases ends:\n         " + first + "\n         " + second + "\n"
	require.Equal(t, 2, strings.Count(got, said), got)
	require.Equal(t, "redlatch: deadlock: "+first+"; "+second+"; `redlatch status b` shows it\n", program.Finish(t, s.URL(), "list").Stderr)
	got, again = scans("status", "-o", "name", "a", "b", "c")
	require.Equal(t, "a\nb\n", got)
	require.Zero(t, again, "names need no search")
	s.Do(t, "DEL", "b")
	require.NotContains(t, program.Finish(t, s.URL(), "status", "a").Stdout, "deadlock")
	require.Empty(t, program.Finish(t, s.URL(), "list").Stderr)
}

func TestListMarksDeadlockedLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i, name := range []string{"a", "b", "free", "other"} {
		owner := codec.NewOwner(program.ClientID, int64(i+1)).String()
		s.Do(t, "HSET", name, owner, 1)
		program.Subscribe(t, s, codec.LockChannel(name))
		if i < 2 {
			announceWait(t, s, owner, []string{"b", "a"}[i])
		}
	}
	s.Do(t, "DEL", "free")
	// Each search takes a second.
	begin := func(args ...string) *program.Process { return program.Start(t, s.URL(), args...) }
	asJSON := begin("list", "-o", "json")
	wide := begin("list", "-o", "wide", "--no-headers")
	names := begin("list", "-o", "name", "--deadlocked", "--sort", "queue", "--no-headers")
	limited := begin("list", "-o", "name", "--deadlocked", "--limit", "1", "--no-headers")
	none := begin("list", "--deadlocked", "o*")
	statuses := begin("status", "-o", "wide", "--no-headers", "a", "b")
	locked := map[string]bool{}
	for line := range strings.Lines(asJSON.Outcome(program.Soon).Stdout) {
		lock := program.JSON(t, line)
		steps, _ := lock["deadlock"].([]any)
		require.Contains(t, []int{0, 2}, len(steps))
		locked[fmt.Sprint(lock["name"])] = len(steps) > 0
	}
	require.Equal(t, map[string]bool{"a": true, "b": true, "other": false}, locked)
	require.Regexp(t, `^a .* yes\nb .* yes\nother .* -\n$`, wide.Outcome(program.Soon).Stdout)
	require.Equal(t, "a\nb\n", names.Outcome(program.Soon).Stdout)
	require.Equal(t, "a\n", limited.Outcome(program.Soon).Stdout)
	require.Equal(t, "redlatch: no locks here in a deadlock that match o*\n", none.Outcome(program.Soon).Stderr)
	require.Regexp(t, `^a .* yes\nb .* yes\n$`, statuses.Outcome(program.Soon).Stdout)
}

func TestStatusWarnsAboutTwoLockKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		channel    func(string) string
		queued     bool
		fields     []any
		says, json string
	}{
		{codec.LockChannel, true, []any{program.SomeOwner, 1}, "for this name as a plain lock, ", `"plain_waiters": 1`},
		{protocol.ReadWriteChannel, false, []any{program.SomeOwner, 1}, "for this name as a read/write lock", `"read_write_waiters": 1`},
		{codec.LockChannel, false, []any{"mode", "read", program.SomeOwner, 1}, "for this name as a plain lock", `"plain_waiters": 1`},
	} {
		name := redistest.Key(t)
		s.Do(t, "HSET", append([]any{name}, c.fields...)...)
		if c.queued {
			program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
		}
		require.NotContains(t, program.OK(t, s.URL(), "status", name), "mixed")
		program.Subscribe(t, s, c.channel(name))
		out := program.OK(t, s.URL(), "status", name)
		require.Contains(t, out, "\n  mixed  1 connection waits "+c.says)
		require.Contains(t, program.OK(t, s.URL(), "status", "--json", name), c.json)
	}
}

func TestLongUnrenewedLeaseFitsTerminal(t *testing.T) {
	t.Parallel()
	left := (59*time.Minute + 59900*time.Millisecond).Milliseconds()
	var b strings.Builder
	(&status{View: inspect.View{Named: inspect.NameOf("a"), Held: true, Lease: inspect.Lease{TTLMillis: &left}}, Renewed: inspect.RenewedNo, Queue: []inspect.Waiter{}}).print(&b)
	program.Narrow(t, b.String())
	require.Contains(t, program.Words(b.String()), "59m59.9s left, not renewed when due: fixed, or the holder is gone")
}
