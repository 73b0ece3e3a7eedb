package acl_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// intrusions are attempts by one prefix's user on a lock with another prefix.
func intrusions(ctx context.Context, l *rlock.Lock) map[string]func() error {
	owner := codec.NewOwner(uuid.New(), 7)
	return map[string]func() error{
		"TryLock":     func() error { _, err := l.TryLock(ctx); return err },
		"Lock":        func() error { _, err := l.Lock(ctx, rlock.WithWait(time.Second)); return err },
		"Lock for":    func() error { _, err := l.Lock(ctx, rlock.WithOwner(owner), rlock.WithWait(time.Second)); return err },
		"Resume":      func() error { _, err := l.Resume(ctx, owner); return err },
		"UnlockAs":    func() error { return l.UnlockAs(ctx, owner) },
		"ForceUnlock": func() error { _, err := l.ForceUnlock(ctx); return err },
		"IsLocked":    func() error { _, err := l.IsLocked(ctx); return err },
		"TTL":         func() error { _, err := l.TTL(ctx); return err },
		"HoldCount":   func() error { _, err := l.HoldCount(ctx, owner); return err },
		"Inspect":     func() error { _, err := admin.Inspect(ctx, l); return err },
	}
}

// commands returns the commands that this user may send.
func commands(name string) [][]any {
	return [][]any{
		{"DEL", name},
		{"HGETALL", name},
		{"PEXPIRE", name, 1},
		{"PUBLISH", codec.LockChannel(name), "0"},
		{"SUBSCRIBE", codec.LockChannel(name)},
		{"PSUBSCRIBE", "*"},
		{"EVAL", "return redis.call('DEL', '" + name + "')", 0},
		{"EVAL", "return redis.call('DEL', KEYS[1])", 1, name},
		{"EVAL", "return redis.call('PUBLISH', ARGV[1], '0')", 1, "app:x", codec.LockChannel(name)},
		{"FLUSHALL"}, {"CONFIG", "GET", "*"}, {"KEYS", "*"}, {"SCAN", 0}, {"MONITOR"}, {"ACL", "LIST"}, {"CLIENT", "LIST"},
		{"PUBSUB", "CHANNELS"}, {"RENAME", name, "app:vault"}, {"SORT", name},
	}
}

// contents returns all keys on the server with their values and TTLs.
func contents(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	keys, err := redis.Strings(s.Do(t, "KEYS", "*"), nil)
	require.NoError(t, err)
	out := map[string]string{}
	for _, key := range keys {
		left, err := redis.Int64(s.Do(t, "PTTL", key), nil)
		require.NoError(t, err)
		out[key] = fmt.Sprintf("%x, expires %v, soon %v", s.Do(t, "DUMP", key), left >= 0, left < soon.Milliseconds())
	}
	return out
}

// everything returns the rule of a user that has the rights of all of the manual's lines for programs.
func everything(t *testing.T) []any {
	t.Helper()
	var all []any
	for _, n := range needs {
		line := redistest.Rights(t, n.title)
		switch {
		case line[1] != "locks":
		case all == nil:
			all = line
		default:
			all = append(all, line[2:]...)
		}
	}
	return all
}

func TestUserCannotAccessLocksOfOtherPrefix(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		s.Do(t, "ACL", everything(t)...)
		client, err := redlatch.Open(t.Context(), s.UserURL("locks"))
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		conn := s.Dial(t) // not a client of ours
		_, err = conn.Do("AUTH", "locks", redistest.Password)
		require.NoError(t, err)
		x := &trial{T: t, server: s}
		for _, name := range []string{"bank:vault", "{bank:vault}:door", "xapp:y", "ap", "{app}:y"} {
			x.heldByHand(name)
			x.queuedByHand(name, map[string]time.Duration{foreign: time.Hour, "second": time.Hour}, foreign, "second")
			heard := listenTo(t, s, codec.LockChannel(name), protocol.OwnerChannel(name, foreign), protocol.OwnerChannel(name, "second"))
			before := contents(t, s)
			fair := rfairlock.New(client, name)
			tries := intrusions(t.Context(), rlock.New(client, name))
			for what, try := range intrusions(t.Context(), fair) {
				tries["fair "+what] = try
			}
			tries["fair Evict"] = func() error { _, err := admin.ForceEvict(t.Context(), fair, "second"); return err }
			for what, try := range tries {
				err := try()
				assert.True(t, transport.IsCode(err, "NOPERM"), "%s of %s: %v", what, name, err)
				assert.NotErrorIs(t, err, redlatch.ErrNotAcquired, "that tells that it is held")
			}
			for _, command := range commands(name) {
				_, err := conn.Do(command[0].(string), command[1:]...)
				refused := func(word string) bool { return err != nil && strings.Contains(err.Error(), word) }
				assert.True(t, slices.ContainsFunc(refusals, refused), "%v: %v", command, err)
			}
			require.Equal(t, before, contents(t, s))
			heard(0)
			s.Do(t, "PUBLISH", codec.LockChannel(name), "0")
			heard(1)
		}
	})
}

// listenTo subscribes to channels, and returns a function that requires that n messages have arrived so far.
func listenTo(t *testing.T, s *redistest.Server, channels ...string) func(n int) {
	t.Helper()
	sub := redis.PubSubConn{Conn: s.Dial(t)}
	for _, channel := range channels {
		require.NoError(t, sub.Subscribe(channel))
		require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(soon))
	}
	return func(n int) {
		t.Helper()
		// Earlier messages arrive before the reply.
		require.NoError(t, sub.Ping("over"))
		for range n {
			require.IsType(t, redis.Message{}, sub.ReceiveWithTimeout(soon))
		}
		require.Equal(t, redis.Pong{Data: "over"}, sub.ReceiveWithTimeout(soon))
	}
}
