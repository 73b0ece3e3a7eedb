package program

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// RedissonOwner is an owner as clients of Redisson are.
	RedissonOwner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"
	// SomeOwner is an owner as clients of Redlatch are, which was made at since.
	SomeOwner = "0193e6c0-6f00-7000-8000-000000000001:7"
	// RedlatchOwner is someOwner where there are owners of several kinds.
	RedlatchOwner = SomeOwner
	// RedlatchSince is when the client of someOwner was made, as the text output shows it.
	RedlatchSince = "2024-12-21T01:06:31Z"
	// LabelText is the label of a client of Redlatch.
	LabelText = "billing@host-3 pid 812"
)

// ClientID is the id of one more client of Redlatch.
var ClientID = uuid.MustParse("0193e6c0-6f00-7000-8000-000000000002")

// These scripts run until a signal ends them; the second one takes SIGKILL.
const (
	// EndsOnSIGTERM ends with SIGTERM, and prints that it did.
	EndsOnSIGTERM = `trap 'echo term; exit 0' TERM; echo up; sleep 600 & wait`
	// IgnoresSIGTERM ends with SIGKILL alone.
	IgnoresSIGTERM = `trap '' TERM; echo up; sleep 600 & wait`
)

// Enqueue adds an owner to the queue of a fair lock by hand.
func Enqueue(t *testing.T, s redistest.Target, name, owner string, deadline time.Duration) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	if deadline != 0 {
		s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(deadline).UnixMilli(), owner)
	}
}

// Listen makes a connection listen as owner's waiter does.
func Listen(t *testing.T, s redistest.Target, name, owner string) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.OwnerChannel(name, owner)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, Soon)
	require.NoError(t, err)
}

// QueueOf returns the queue of a fair lock.
func QueueOf(t *testing.T, s redistest.Target, name string) []string {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	return queue
}

// HeldBy makes a lock be held, as by a client that has died.
func HeldBy(t *testing.T, s redistest.Target, owner string, lease time.Duration) (name string) {
	t.Helper()
	name = redistest.Key(t)
	s.Do(t, "HSET", name, owner, 1)
	s.Do(t, "PEXPIRE", name, lease.Milliseconds())
	return name
}

// Exists reports whether the lock is held.
func Exists(t *testing.T, s redistest.Target, name string) bool {
	t.Helper()
	return s.Do(t, "EXISTS", name) == int64(1)
}

// LongOwner is the n-th waiter of a long queue, from 0.
func LongOwner(n int) string { return codec.NewOwner(uuid.MustParse(JavaID), int64(1000+n)).String() }

// LongQueue makes a lock be held and n wait for it, each for a minute more than the one
// before it.
func LongQueue(t *testing.T, s *redistest.Server, name, holder string, n int) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("HSET", name, holder, 1))
	now := time.Now().UnixMilli()
	for i := range n {
		require.NoError(t, c.Send("RPUSH", codec.QueueKey(name), LongOwner(i)))
		require.NoError(t, c.Send("ZADD", codec.TimeoutKey(name), now+int64(i+1)*60_000, LongOwner(i)))
	}
	_, err := c.Do("")
	require.NoError(t, err)
}
