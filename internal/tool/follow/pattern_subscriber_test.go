package follow

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon bounds waits for what should happen at once.
const soon = 10 * time.Second

// listen receives messages of the locks that match until the test ends.
func listen(t *testing.T, s redistest.Target, pattern string) *PatternSubscriber {
	t.Helper()
	return run(t, func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }, pattern)
}

func run(t *testing.T, dial func(context.Context) (redis.Conn, error), pattern string) *PatternSubscriber {
	t.Helper()
	s, err := SubscribePatterns(t.Context(), dial, pattern, inspect.IsPattern(pattern))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return s
}

func next(t *testing.T, s *PatternSubscriber) Message {
	t.Helper()
	select {
	case m := <-s.Messages:
		return m
	case <-time.After(soon):
		require.FailNow(t, "nothing was heard")
		return Message{}
	}
}

func TestMessagesOfMatchingLocksAreReceived(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		sub := listen(t, s, "ord*[0-9]")
		for _, name := range []string{"orders", "ord{er}s:1", "other:1"} {
			s.Do(t, "PUBLISH", codec.LockChannel(name), codec.MessageUnlock)
		}
		s.Do(t, "PUBLISH", codec.OwnerChannel("orders:2", owner), codec.MessageUnlock)
		s.Do(t, "PUBLISH", codec.ReadWriteChannel("orders:3"), codec.MessageUnlock)
		m := next(t, sub)
		require.Equal(t, Message{At: m.At, Name: "ord{er}s:1"}, m)
		m = next(t, sub)
		require.Equal(t, Message{At: m.At, Name: "orders:2", Owner: owner}, m)
		require.Equal(t, "orders:3", next(t, sub).Name, "a read/write lock")
		require.NoError(t, sub.Unheard())
		require.WithinDuration(t, time.Now(), m.At, soon)
	})
}

func TestALostConnectionIsReportedAndMadeAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sub := listen(t, s, "orders")
	require.Equal(t, 1, s.KillClients(t, "pubsub"))
	require.Error(t, next(t, sub).Gap)
	m := next(t, sub)
	require.Equal(t, Message{At: m.At}, m, "received again")
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), codec.MessageUnlock)
	require.Equal(t, "orders", next(t, sub).Name)
}

func TestAUserWithLimitedChannelsListensToAllOfThem(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", "nopass", "+psubscribe", "&redisson_lock__channel:*")
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", s.Addr(), redis.DialUsername("onlooker"), redis.DialPassword("x"))
	}
	sub := run(t, dial, "orders")
	s.Do(t, "PUBLISH", codec.LockChannel("other"), codec.MessageUnlock)
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), codec.MessageUnlock)
	require.Equal(t, "orders", next(t, sub).Name)
	require.ErrorContains(t, sub.Unheard(), "NOPERM", "read/write locks are refused, and the others are heard")

	s.Do(t, "ACL", "SETUSER", "onlooker", "resetchannels", "&other*")
	_, err := SubscribePatterns(t.Context(), dial, "orders", false)
	require.ErrorContains(t, err, "NOPERM")
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, 10*time.Millisecond, "it has hung up")
}
