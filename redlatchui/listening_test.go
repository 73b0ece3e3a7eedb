package redlatchui_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// waitScene makes one name of each kind that clients wait for.
func waitScene(t *testing.T, s *redistest.Server) {
	t.Helper()
	for _, name := range []string{"app:plain", "app:calm"} {
		s.Do(t, "HSET", name, program.SomeOwner, 1)
		s.Do(t, "PEXPIRE", name, 600_000)
	}
	s.Do(t, "HSET", "app:books", "mode", "write", javaA+":1:write", 1)
	s.Do(t, "PEXPIRE", "app:books", 600_000)
	program.Enqueue(t, s, "app:fair", javaB+":4", time.Minute)
	s.Do(t, "SET", "app:crawl", 0)
	s.Do(t, "ZADD", codec.PermitsKey("app:crawl"), time.Now().Add(time.Hour).UnixMilli(), "0123456789abcdef")
	for _, channel := range []string{
		codec.LockChannel("app:plain"), codec.LockChannel("app:plain"), codec.ReadWriteChannel("app:books"), codec.SemaphoreChannel("app:crawl"),
	} {
		c := s.Dial(t)
		require.NoError(t, c.Send("SUBSCRIBE", channel))
		require.NoError(t, c.Flush())
		_, err := c.Receive()
		require.NoError(t, err)
	}
}

// Who waits without a place in a queue is known from who listens, which is a hint.
func TestThePageSaysHowManyListenForALock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	waitScene(t, s)
	page := open(t, s, redlatchui.Options{})
	text := says(t, page, "/?sort=queue", "5 locks")
	for _, row := range []string{"app:plain plain Redlatch 00000001:7 at least", "2 listening app:books", "1 listening app:crawl semaphore 1 taken, 0 free 1 listening"} {
		require.Contains(t, text, row)
	}
	require.NotContains(t, text, "not known")
	text = says(t, page, "/lock?name=app:plain", "Held by")
	require.Contains(t, text, "No client is queued on the server, and 2 connections listen for the release of the lock. That is a hint of how many clients wait")
	text = says(t, page, "/lock?name=app:books", "Held by")
	require.Contains(t, text, "1 connection listens for the release of the lock.")
	text = says(t, page, "/lock?name=app:calm", "Held by")
	require.Contains(t, text, "no connection listens for the release of the lock: no client seems to wait for it.")
	require.Contains(t, says(t, page, "/lock?name=app:crawl", "without a free permit"), "and 1 connection waits: until one is given back")
}

// Where subscribers cannot be counted, nothing says that none wait.
func TestWhatAUserMayNotCountIsNotKnown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	waitScene(t, s)
	s.Do(t, "ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-pubsub")
	client, err := redlatch.Open(t.Context(), s.UserURL("blind"))
	require.NoError(t, err)
	page, err := redlatchui.New(client, redlatchui.Options{Every: 100 * time.Millisecond})
	require.NoError(t, err)
	plain, err := redlatchui.New(client, redlatchui.Options{Pattern: "app:calm"})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(page.Close(), plain.Close(), client.Close())) }()
	require.Contains(t, says(t, plain, "/", "1 lock ·"), "which waiters are dead, is not known", "of plain locks alone")
	text := says(t, page, "/?sort=name", "5 locks")
	require.Contains(t, text, "which waiters are dead, is not known: subscribers cannot be counted. ")
	require.Contains(t, text, "app:books read/write, write Redisson 0b8f3a11:1w at least")
	require.Contains(t, text, "not known app:calm")
	require.Contains(t, text, "1 taken, 0 free not known")
	require.Contains(t, text, "app:fair fair Free with a queue free 1 Redisson")
	for _, name := range []string{"plain", "calm", "books"} {
		text := says(t, page, "/lock?name=app:"+name, "Held by")
		require.Contains(t, text, "is not known: subscribers cannot be counted.", name)
		require.NotContains(t, text, "no connection listens", name)
	}
	require.Contains(t, says(t, page, "/lock?name=app:crawl", "without a free permit"), "how many wait is not known")
	text = says(t, page, "/lock?name=app:fair", "1 unknown")
	require.Contains(t, text, "is alive is not known: subscribers cannot be counted.")
}

// Users are not replicated: without one on the replicas it is not known which waiters are dead.
func TestTheUserMustExistOnReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	looks := s.GiveLooks(t)
	program.Enqueue(t, s, "app:fair", javaB+":4", time.Hour)
	client, err := redlatch.Open(t.Context(), looks)
	require.NoError(t, err)
	page, err := redlatchui.New(client, redlatchui.Options{Every: 100 * time.Millisecond, Pattern: "app:*"})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(page.Close(), client.Close())) }()
	text := says(t, page, "/lock?name=app:fair", "1 unknown")
	require.Contains(t, text, "replica "+replica.Addr())
	// As docs/ui.md has it.
	replica.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", ">password", "+pubsub|numsub")
	says(t, page, "/lock?name=app:fair", "1 dead")
	says(t, page, "/", "Dead waiter in front")
}
