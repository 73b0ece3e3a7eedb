package rfairlock_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// documentedUser returns the two ACL SETUSER commands that the operator's manual
// gives, for plain locks and for fair ones besides, as one, word by word.
func documentedUser(t *testing.T) []any {
	t.Helper()
	manual, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	args := []any{"SETUSER", "locks"}
	commands := strings.Split(string(manual), "\nACL SETUSER locks")[1:]
	require.Len(t, commands, 2, "the manual no longer shows the commands")
	for _, command := range commands {
		command, _, found := strings.Cut(command, "```")
		require.True(t, found)
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
	}
	return args
}

// leastPrivileged starts a server with the manual's user, and gives it more
// rights, or fewer. It returns the user's URL.
func leastPrivileged(t *testing.T, rights ...any) (*redistest.Server, string) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(t, "ACL", append(documentedUser(t), rights...)...)
	return s, "redis://locks:password@" + s.Addr()
}

// aclNames are names that the manual's user may lock.
func aclNames(t *testing.T) []string {
	t.Helper()
	return []string{"app:" + redistest.Key(t), "{app:" + redistest.Key(t) + "}:in-braces"}
}

// everyOperation uses all that a fair lock has.
func everyOperation(t *testing.T, s *redistest.Server, client *redlatch.Client, name string) {
	t.Helper()
	l := rfairlock.New(client, name)
	hold := take(t, l, rlock.WithWatchdog(3*time.Second))
	inner, err := l.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	require.NoError(t, inner.Unlock())
	queue := queueUp(t.Context(), t, s, l, 3)
	_, err = l.Lock(t.Context(), rlock.WithWait(50*time.Millisecond))
	checkHeld(t, err)
	awaitQueue(t, s, name, 3)
	in, err := l.Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, in.Queue, 3)
	require.NoError(t, hold.Unlock())
	for i, w := range queue {
		h := w.acquired(t, promptly)
		if i == len(queue)-1 {
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
			require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
			continue
		}
		require.NoError(t, h.Unlock())
	}
	_, err = client.ClockOffset(t.Context())
	require.NoError(t, err)
	requireNoTrace(t, s, name)
}

func TestU42DocumentedUserMayDoEverythingWithAFairLock(t *testing.T) {
	t.Parallel()
	s, url := leastPrivileged(t)
	logged, log := newJournal()
	client := connect(t, url, log)
	for _, name := range aclNames(t) {
		everyOperation(t, s, client, name)
	}
	// A command by itself and one in a script are refused in different words.
	for _, refusal := range []string{"NOPERM", "can't run this command", "no permission"} {
		require.Zero(t, logged.count(refusal), "something was refused, if only in the background")
	}
	_, err := rfairlock.New(client, redistest.Key(t)).TryLock(t.Context())
	require.True(t, transport.IsCode(err, "NOPERM"), err)
}

// Give-up goes another way where the deadlines are in another order than the queue.
func TestU42DocumentedUserMayLeaveAQueueThatIsOutOfOrder(t *testing.T) {
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
	require.ErrorIs(t, w.failed(t, promptly), context.Canceled)
	awaitQueue(t, s, l.Name(), 2)
	require.Equal(t, map[string]int64{
		"later":  now.Add(3*time.Hour - 300*time.Second).UnixMilli(),
		"sooner": now.Add(2*time.Hour - 300*time.Second).UnixMilli(),
	}, deadlinesOf(t, s, l.Name()))
}

// What the manual calls optional may be missing.
func TestU42OptionalRightsMayBeMissingForAFairLock(t *testing.T) {
	t.Parallel()
	for _, rights := range [][]any{
		{"+pubsub|numsub"},
		{"+pubsub|numsub", "+role"},
		{"+client|id", "+client|kill"},
		{"-time", "-hkeys", "-ping"},
	} {
		s, url := leastPrivileged(t, rights...)
		client := connect(t, url)
		l := rfairlock.New(client, aclNames(t)[0])
		hold := take(t, rfairlock.New(connect(t, url), l.Name()))
		w := queueUp(t.Context(), t, s, l, 1)[0]
		require.NoError(t, hold.Unlock())
		require.NoError(t, w.acquired(t, promptly).Unlock())
		requireNoTrace(t, s, l.Name())
	}
}
