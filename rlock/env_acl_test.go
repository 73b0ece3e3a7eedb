package rlock_test

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// documented lists the sections of the operator's manual that everyOperation needs.
var documented = []string{"Plain locks", "Inspection"}

// leastPrivileged starts a server with the manual's user, changes its rights, and returns its URL.
func leastPrivileged(t *testing.T, rights ...any) (*redistest.Server, string) {
	t.Helper()
	s := redistest.Start(t)
	return s, s.GiveRights(t, documented, rights...)
}

// everyOperation uses every feature of a lock, and calls between before each step.
func everyOperation(t *testing.T, s *redistest.Server, client *redlatch.Client, name string, between func()) {
	t.Helper()
	l := rlock.New(client, name)
	between()
	hold := take(t, l, rlock.WithWatchdog(forever))
	between()
	w := await(t.Context(), l) // in this process's local queue
	awaitRenewal(t, s, name)
	between()
	require.NoError(t, hold.Unlock())
	require.NoError(t, w.acquired(t, soon).Unlock())
	between()
	holdByHand(t, s, name, forever)
	w = await(t.Context(), l) // and a subscriber
	awaitWaiters(t, s, name)
	between()
	freeByHand(t, s, name)
	second := w.acquired(t, soon)
	between()
	isLocked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, isLocked)
	between()
	count, err := l.HoldCount(t.Context(), second.Owner())
	require.NoError(t, err)
	require.Equal(t, int64(1), count)
	between()
	left, err := l.TTL(t.Context())
	require.NoError(t, err)
	require.Positive(t, left)
	between()
	in, err := admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	require.NotEmpty(t, in.Holders)
	between()
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	between()
	forced, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	between()
	require.ErrorIs(t, second.Unlock(), redlatch.ErrLost)
	between()
	last, err := l.Lock(t.Context(), rlock.WithLease(forever), rlock.WithWait(soon))
	require.NoError(t, err)
	require.NoError(t, last.LetExpire())
	freeByHand(t, s, name)
}

func aclNames(t *testing.T) []string {
	t.Helper()
	return []string{"app:" + redistest.Key(t), "{app:" + redistest.Key(t) + "}:in-braces"}
}

func TestU42DocumentedUserCanDoEverything(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	logged, log := newJournal()
	client := connect(t, url, log)
	names := aclNames(t)
	everyOperation(t, s, client, names[0], func() {})
	// The server forgets the scripts before each step.
	everyOperation(t, s, client, names[1], func() { s.Do(t, "SCRIPT", "FLUSH", "SYNC") })
	stats := s.CommandStats(t)
	require.Positive(t, stats["eval"])
	require.Positive(t, stats["evalsha"])
	// The rejections of commands and scripts are worded differently.
	for _, refusal := range []string{"NOPERM", "can't run this command", "no permission"} {
		require.Zero(t, logged.count(refusal), "a call was rejected, possibly in the background")
	}
}

func TestU42DocumentedUserCannotUseOtherNames(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	name := redistest.Key(t)
	_, err := rlock.New(connect(t, url), name).TryLock(t.Context())
	requireOnly(t, err, "try-lock", name)
	require.True(t, transport.IsCode(err, "NOPERM"), err)
	require.False(t, locked(t, s, name))
}

func TestU42LocksWorkWithoutOptionalRights(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	for _, rights := range [][]any{
		{},
		{"+client|setname"},
		{"+pubsub|numsub"},
		{"+role"},
		{"+pubsub|numsub", "+role"},
		{"+client|id", "+client|kill", "+client|setname"},
		{"-ping"},
		{"-hkeys"},
	} {
		s.GiveRights(t, documented, rights...)
		client := connect(t, url, redlatch.WithClientName("with-a-name"))
		name := aclNames(t)[0]
		hold := take(t, rlock.New(connect(t, url), name))
		w := await(t.Context(), rlock.New(client, name))
		awaitWaiters(t, s, name)
		_, err := rlock.New(client, name).TryLock(t.Context())
		requireOnly(t, err, "try-lock", name, redlatch.ErrNotAcquired)
		require.NoError(t, hold.Unlock())
		require.NoError(t, w.acquired(t, soon).Unlock())
	}
}

func TestU42LostRepliesResolvedWithoutClientKill(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	p := redistest.NewProxy(t, s.Addr())
	for _, rights := range [][]any{{}, {"+client|id"}, {"+client|id", "+client|kill"}} {
		s.GiveRights(t, documented, rights...)
		client := connect(t, strings.Replace(url, s.Addr(), p.Addr(), 1))
		warm := aclNames(t)[0]
		require.NoError(t, take(t, rlock.New(client, warm)).Unlock())
		before, name := grants(t, s), aclNames(t)[0]
		p.CutReplyAfter(0)
		_, err := rlock.New(client, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.Equal(t, before+1, grants(t, s))
		until(t, soon, "the lock is free", func() bool { return !locked(t, s, name) })
	}
}

func TestU42AcquireDeniedMidScriptLeavesNoHold(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "-pexpire")
	client := connect(t, url)
	name := aclNames(t)[0]
	_, err := rlock.New(client, name).TryLock(t.Context())
	var refusal *transport.ServerError
	require.ErrorAs(t, err, &refusal)
	require.ErrorContains(t, err, "can't run this command")
	require.Equal(t, int64(1), grants(t, s), "the script granted the lock")
	until(t, soon, "the lock is free", func() bool { return !locked(t, s, name) })
}

func TestU42WaiterWithoutSubscribeRightFails(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "-subscribe")
	client := connect(t, url)
	name := aclNames(t)[0]
	holdByHand(t, s, name, forever)
	_, err := rlock.New(client, name).Lock(t.Context())
	requireOnly(t, err, "lock", name)
	require.True(t, transport.IsCode(err, "NOPERM"), err)
}

func listens(t *testing.T, s *redistest.Server, channel string) {
	t.Helper()
	sub := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, sub.Subscribe(channel))
	require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(soon))
}

// The manual's rights are sufficient, and each of them is needed on the master and its replicas.
func TestU42DocumentedUserCanCountSubscribers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []any{"SETUSER", "locks", "+pubsub|numsub", "+role"}, redistest.Rights(t, "Subscribers"))
	s, url := leastPrivileged(t)
	replica := redistest.StartReplica(t, s)
	for _, c := range []struct {
		master, replica []any
		counted         bool
	}{
		{[]any{"+pubsub|numsub", "+role"}, []any{"+pubsub|numsub"}, true},
		{[]any{"+pubsub|numsub", "+role", "-ping"}, []any{"+pubsub|numsub", "-ping"}, true},
		{[]any{"+pubsub|numsub"}, []any{"+pubsub|numsub"}, false},
		{[]any{"+role"}, []any{"+pubsub|numsub"}, false},
		{[]any{"+pubsub|numsub", "+role"}, nil, false},
	} {
		s.GiveRights(t, documented, c.master...)
		replica.GiveRights(t, documented, c.replica...)
		channel := codec.LockChannel(aclNames(t)[0])
		listens(t, replica, channel)
		counts, err := engine.EngineOf(connect(t, url)).Listeners(t.Context(), channel)
		if !c.counted {
			require.True(t, transport.IsCode(err, "NOPERM"), "%v: %v", c, err)
			continue
		}
		require.NoError(t, err, "%v", c)
		require.Equal(t, []int64{1}, counts)
	}
}

// Managed servers may lack these commands.
func TestU41DefaultsAvoidWaitAndInfo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redistest.StartReplica(t, s) // a replica that WAIT would wait for
	s.Do(t, "CONFIG", "RESETSTAT")
	one, other := connect(t, s.URL()), connect(t, s.URL())
	hold := take(t, rlock.New(one, "job"), rlock.WithWatchdog(forever))
	w := await(t.Context(), rlock.New(other, "job"))
	awaitWaiters(t, s, "job")
	inner, err := rlock.New(one, "job").Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	awaitRenewal(t, s, "job")
	require.NoError(t, inner.Unlock())
	require.NoError(t, hold.Unlock())
	next := w.acquired(t, soon)
	owner, err := next.HandOver()
	require.NoError(t, err)
	require.NoError(t, rlock.New(one, "job").UnlockAs(t.Context(), owner))
	_, err = admin.Inspect(t.Context(), rlock.New(one, "job"))
	require.NoError(t, err)

	stats := s.CommandStats(t)
	require.Positive(t, stats["evalsha"], "the statistics were not read: the check itself is broken")
	for _, command := range []string{"wait", "waitaof", "info", "cluster|info", "cluster|nodes", "config|get", "command"} {
		require.Zero(t, stats[command], command)
	}
}
