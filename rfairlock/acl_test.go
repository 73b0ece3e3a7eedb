package rfairlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/transport"
)

// documented are the headings in the operator's manual whose rights everyOperation needs.
var documented = []string{"Plain locks", "Fair locks", "Server time", "Inspection"}

// leastPrivileged starts a server with the manual's user, changes the user's rights, and returns its
// URL.
func leastPrivileged(t *testing.T, rights ...any) (*redistest.Server, string) {
	t.Helper()
	s := redistest.Start(t)
	return s, s.GiveRights(t, documented, rights...)
}

// aclNames returns names that the manual's user may lock.
func aclNames(t *testing.T) []string {
	t.Helper()
	return []string{"app:" + redistest.Key(t), "{app:" + redistest.Key(t) + "}:in-braces"}
}

// everyOperation calls every method of a fair lock.
func everyOperation(t *testing.T, s *redistest.Server, client *redlatch.Client, name string) {
	t.Helper()
	l := rfairlock.New(client, name)
	hold := take(t, l)
	inner, err := l.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	require.NoError(t, inner.Unlock())
	queue := queueUp(t.Context(), t, s, l, 3)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := queueUp(ctx, t, s, l, 1)[0]
	cancel()
	_ = leaver.failed(t, soon) // ErrNotAcquired, or ErrUncertain if it was about to try once more
	awaitQueue(t, s, name, 3)
	in, err := admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, in.Queue, 3)
	require.NoError(t, hold.Unlock())
	for i, w := range queue {
		h := w.acquired(t, soon)
		if i == len(queue)-1 {
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
			require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
			continue
		}
		require.NoError(t, h.Unlock())
	}
	_, err = engine.EngineOf(client).Clock.Offset(t.Context())
	require.NoError(t, err)
}

func TestU42DocumentedUserCanUseFairLock(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	logged, log := redistest.NewJournal()
	client := connect(t, url, redlatch.WithLogger(log))
	for _, name := range aclNames(t) {
		everyOperation(t, s, client, name)
	}
	requireNoTrace(t, s, "app:")
	// Redis has different errors for commands and for scripts.
	for _, refusal := range []string{"NOPERM", "can't run this command", "no permission"} {
		require.Empty(t, logged.Lines(refusal))
	}
	_, err := rfairlock.New(client, redistest.Key(t)).TryLock(t.Context())
	require.True(t, transport.IsCode(err, "NOPERM"), err)
}

// The deadlines are not in the order of the queue.
func TestU42DocumentedUserCanLeaveUnorderedQueue(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	l := rfairlock.New(connect(t, url), aclNames(t)[0])
	holdByHand(t, s, l.Name(), time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	w := queueUp(ctx, t, s, l, 1)[0]
	now := time.Now()
	queueByHand(t, s, l.Name(), "later", now.Add(3*time.Hour))
	queueByHand(t, s, l.Name(), "sooner", now.Add(2*time.Hour))
	cancel()
	require.ErrorIs(t, w.failed(t, soon), context.Canceled)
	awaitQueue(t, s, l.Name(), 2)
	require.Equal(t, map[string]int64{
		"later":  now.Add(3*time.Hour - 300*time.Second).UnixMilli(),
		"sooner": now.Add(2*time.Hour - 300*time.Second).UnixMilli(),
	}, deadlinesOf(t, s, l.Name()))
}

func TestU42FairLockWorksWithoutOptionalRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, rights := range [][]any{
		{"+pubsub|numsub"},
		{"+pubsub|numsub", "+role"},
		{"+client|id", "+client|kill"},
		{"-time", "-hkeys", "-ping"},
	} {
		url := s.GiveRights(t, documented, rights...)
		client := connect(t, url)
		l := rfairlock.New(client, aclNames(t)[0])
		hold := take(t, rfairlock.New(connect(t, url), l.Name()))
		w := queueUp(t.Context(), t, s, l, 1)[0]
		require.NoError(t, hold.Unlock())
		require.NoError(t, w.acquired(t, soon).Unlock())
	}
	requireNoTrace(t, s, "app:")
}

// The scripts of heartbeats, each on its longest path. A waiter sends them after five seconds.
func TestU42DocumentedUserCanMaintainQueue(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	conn, err := redis.DialURL(url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	name, now := aclNames(t)[0], time.Now()
	for _, owner := range []string{"dead", "second", "third"} {
		queueByHand(t, s, name, owner, now.Add(time.Hour))
	}
	places := []any{name, codec.QueueKey(name), codec.TimeoutKey(name), codec.LockChannel(name)}
	for _, call := range []struct {
		script *transport.Script
		keys   []any
		args   []any
	}{
		{luasrc.FairHeartbeat, places[:3], []any{now.UnixMilli(), 7200000, 300000, 64, 1, "second", 300000, "third", 5, 1}},
		{luasrc.FairEvict, places, []any{now.UnixMilli(), 15000, "PUBLISH", "0", "dead", now.Add(time.Hour).UnixMilli()}},
		{luasrc.FairNudge, []any{places[0], places[1], places[3]}, []any{"second", "PUBLISH", "0"}},
	} {
		_, err := conn.Do("EVAL", slices.Concat([]any{call.script.Text(), len(call.keys)}, call.keys, call.args)...)
		require.NoError(t, err, call.script.Name())
	}
	require.Equal(t, []string{"second", "third"}, queueOf(t, s, name))
}
