package main

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
	// redisson is an owner as clients of Redisson are.
	redisson = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"
	// someOwner is an owner as clients of Redlatch are, which was made at since.
	someOwner = "0193e6c0-6f00-7000-8000-000000000001:7"
	// native is someOwner where there are owners of several kinds.
	native = someOwner
	// since is when the client of someOwner was made, as people are told it.
	since = "2024-12-21T01:06:31Z"
	// labelText is the label of a client of Redlatch.
	labelText = "billing@host-3 pid 812"
)

// clientID is the id of one more client of Redlatch.
var clientID = uuid.MustParse("0193e6c0-6f00-7000-8000-000000000002")

// These scripts run until a signal ends them; the second one takes SIGKILL.
const (
	// polite ends with SIGTERM, and says so.
	polite = `trap 'echo term; exit 0' TERM; echo up; sleep 600 & wait`
	// stubborn ends with SIGKILL alone.
	stubborn = `trap '' TERM; echo up; sleep 600 & wait`
)

// queued puts somebody into the queue of a fair lock by hand.
func queued(t *testing.T, s redistest.Target, name, owner string, deadline time.Duration) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	if deadline != 0 {
		s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(deadline).UnixMilli(), owner)
	}
}

// listening makes a connection listen as owner's waiter does.
func listening(t *testing.T, s redistest.Target, name, owner string) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.OwnerChannel(name, owner)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, soon)
	require.NoError(t, err)
}

// queueOf returns the queue of a fair lock.
func queueOf(t *testing.T, s redistest.Target, name string) []string {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	return queue
}

// heldBy makes a lock be held, as by a client that has died.
func heldBy(t *testing.T, s redistest.Target, owner string, lease time.Duration) (name string) {
	t.Helper()
	name = redistest.Key(t)
	s.Do(t, "HSET", name, owner, 1)
	s.Do(t, "PEXPIRE", name, lease.Milliseconds())
	return name
}

// exists reports whether the lock is held.
func exists(t *testing.T, s redistest.Target, name string) bool {
	t.Helper()
	return s.Do(t, "EXISTS", name) == int64(1)
}

// longOwner is the n-th waiter of a long queue, from 0.
func longOwner(n int) string { return codec.NewOwner(uuid.MustParse(javaID), int64(1000+n)).String() }

// longQueue makes a lock be held and n wait for it, each for a minute more than the one
// before it.
func longQueue(t *testing.T, s *redistest.Server, name, holder string, n int) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("HSET", name, holder, 1))
	now := time.Now().UnixMilli()
	for i := range n {
		require.NoError(t, c.Send("RPUSH", codec.QueueKey(name), longOwner(i)))
		require.NoError(t, c.Send("ZADD", codec.TimeoutKey(name), now+int64(i+1)*60_000, longOwner(i)))
	}
	_, err := c.Do("")
	require.NoError(t, err)
}

// logged returns the commands that the server was slow at since it was last asked.
func logged(t *testing.T, s *redistest.Server) (commands [][]string) {
	t.Helper()
	entries, err := redis.Values(s.Do(t, "SLOWLOG", "GET", -1), nil)
	require.NoError(t, err)
	for _, entry := range entries {
		fields, err := redis.Values(entry, nil)
		require.NoError(t, err)
		command, err := redis.Strings(fields[3], nil)
		require.NoError(t, err)
		commands = append(commands, command)
	}
	s.Do(t, "SLOWLOG", "RESET")
	return commands
}

// slow returns those of the commands that are slow each time. A machine that is busy
// stops the server in the midst of any command.
func slow(t *testing.T, s *redistest.Server, commands [][]string) (always [][]string) {
	t.Helper()
	for _, command := range commands {
		again := true
		for tries := 0; again && tries < 10; tries++ {
			s.Do(t, command[0], redis.Args{}.AddFlat(command[1:])...)
			again = len(logged(t, s)) > 0
		}
		if again {
			always = append(always, command)
		}
	}
	return always
}
