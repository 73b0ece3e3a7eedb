package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// documented are the needs, by their headings in the operator's manual, of what
// everyOperation does.
var documented = []string{"Plain locks", "Inspection"}

// leastPrivileged starts a server with the manual's user, and gives it more
// rights, or fewer. It returns the user's URL.
func leastPrivileged(t *testing.T, rights ...any) (*redistest.Server, string) {
	t.Helper()
	s := redistest.Start(t)
	return s, s.GiveRights(t, documented, rights...)
}

// everyOperation uses all that a lock has, and runs between before each step.
func everyOperation(t *testing.T, s *redistest.Server, client *redlatch.Client, name string, between func()) {
	t.Helper()
	l := rlock.New(client, name)
	between()
	hold := take(t, l, rlock.WithWatchdog(shortLease))
	between()
	w := await(t.Context(), l) // in the local queue of this process
	awaitRenewal(t, s, name)
	between()
	require.NoError(t, hold.Unlock())
	require.NoError(t, w.acquired(t, soon).Unlock())
	between()
	holdByHand(t, s, name, forever)
	w = await(t.Context(), l) // and one that listens
	awaitWaiters(t, s, name)
	between()
	freeByHand(t, s, name)
	second := w.acquired(t, soon)
	between()
	isLocked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, isLocked)
	between()
	isHeld, err := l.IsHeldBy(t.Context(), second.Owner())
	require.NoError(t, err)
	require.True(t, isHeld)
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
	last, err := l.Lock(t.Context(), rlock.WithLease(shortLease), rlock.WithWait(soon))
	require.NoError(t, err)
	require.NoError(t, last.LetExpire())
	freeByHand(t, s, name)
}

// aclNames are names that the manual's user may lock.
func aclNames(t *testing.T) []string {
	t.Helper()
	return []string{"app:" + redistest.Key(t), "{app:" + redistest.Key(t) + "}:in-braces"}
}

func TestU42DocumentedUserMayDoEverything(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	logged, log := newJournal()
	client := connect(t, url, log)
	for _, name := range aclNames(t) {
		everyOperation(t, s, client, name, func() {})
	}
	// A command by itself and one in a script are refused in different words.
	for _, refusal := range []string{"NOPERM", "can't run this command", "no permission"} {
		require.Zero(t, logged.count(refusal), "something was refused, if only in the background")
	}
}

func TestU42DocumentedUserMayNotTouchOtherNames(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	name := redistest.Key(t)
	_, err := rlock.New(connect(t, url), name).TryLock(t.Context())
	requireOnly(t, err, "trylock", name)
	require.True(t, transport.IsCode(err, "NOPERM"), err)
	require.False(t, locked(t, s, name))
}

func TestU42ScriptsThatTheServerForgetsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	client := connect(t, url)
	flush := func() { s.Do(t, "SCRIPT", "FLUSH", "SYNC") }
	for _, name := range aclNames(t) {
		everyOperation(t, s, client, name, flush)
	}
	stats := s.CommandStats(t)
	require.Positive(t, stats["eval"])
	require.Positive(t, stats["evalsha"])
}

// Optional rights make some things better. Nothing else depends on them, and
// nothing is worse with them.
func TestU42OptionalRightsMayBeMissing(t *testing.T) {
	t.Parallel()
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
		s, url := leastPrivileged(t, rights...)
		client := connect(t, url, redlatch.WithClientName("with-a-name"))
		name := aclNames(t)[0]
		hold := take(t, rlock.New(connect(t, url), name))
		w := await(t.Context(), rlock.New(client, name))
		awaitWaiters(t, s, name)
		_, err := rlock.New(client, name).TryLock(t.Context())
		requireOnly(t, err, "trylock", name, redlatch.ErrNotAcquired)
		require.NoError(t, hold.Unlock())
		require.NoError(t, w.acquired(t, soon).Unlock())
	}
}

// Without the right to kill connections a lost reply is settled by asking.
func TestU42LostRepliesAreResolvedWithoutTheRightToKill(t *testing.T) {
	t.Parallel()
	for _, rights := range [][]any{{}, {"+client|id"}, {"+client|id", "+client|kill"}} {
		s, url := leastPrivileged(t, rights...)
		p := redistest.NewProxy(t, s.Addr())
		client := connect(t, strings.Replace(url, s.Addr(), p.Addr(), 1))
		warm := aclNames(t)[0]
		require.NoError(t, take(t, rlock.New(client, warm)).Unlock())
		before, name := grants(t, s), aclNames(t)[0]
		p.CutReplyAfter(0)
		_, err := rlock.New(client, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.Equal(t, before+1, grants(t, s))
		until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, name) })
	}
}

// A script that is refused half-way leaves no lock behind, least of all one
// without a lease.
func TestU42AcquireThatIsRefusedHalfWayLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "-pexpire")
	client := connect(t, url)
	name := aclNames(t)[0]
	_, err := rlock.New(client, name).TryLock(t.Context())
	var refusal *transport.ServerError
	require.ErrorAs(t, err, &refusal)
	require.ErrorContains(t, err, "can't run this command")
	require.Equal(t, int64(1), grants(t, s), "it got as far as that")
	until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, name) })
}

func TestU42WaiterWithoutTheRightToSubscribeGetsAnError(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t, "-subscribe")
	client := connect(t, url)
	name := aclNames(t)[0]
	holdByHand(t, s, name, forever)
	_, err := rlock.New(client, name).Lock(t.Context())
	requireOnly(t, err, "lock", name)
	require.True(t, transport.IsCode(err, "NOPERM"), err)
}
