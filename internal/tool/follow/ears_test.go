package follow

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon bounds waits for what should happen at once.
const soon = 10 * time.Second

// listen hears the locks that match until the test ends.
func listen(t *testing.T, s redistest.Target, pattern string) *Ears {
	t.Helper()
	return run(t, func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }, pattern)
}

func run(t *testing.T, dial func(context.Context) (redis.Conn, error), pattern string) *Ears {
	t.Helper()
	e, err := Listen(t.Context(), dial, pattern, listing.Match(pattern))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return e
}

func next(t *testing.T, e *Ears) Message {
	t.Helper()
	select {
	case m := <-e.Heard:
		return m
	case <-time.After(soon):
		require.FailNow(t, "nothing was heard")
		return Message{}
	}
}

func TestMessagesOfLocksThatMatchAreHeard(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		e := listen(t, s, "ord*[0-9]")
		for _, name := range []string{"orders", "ord{er}s:1", "other:1"} {
			s.Do(t, "PUBLISH", codec.LockChannel(name), codec.MessageUnlock)
		}
		s.Do(t, "PUBLISH", codec.OwnerChannel("orders:2", owner), codec.MessageUnlock)
		m := next(t, e)
		require.Equal(t, Message{At: m.At, Name: "ord{er}s:1"}, m)
		m = next(t, e)
		require.Equal(t, Message{At: m.At, Name: "orders:2", Owner: owner}, m)
		require.WithinDuration(t, time.Now(), m.At, soon)
	})
}

func TestAConnectionThatIsLostIsToldOfAndMadeAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := listen(t, s, "orders")
	require.Equal(t, 1, s.KillClients(t, "pubsub"))
	require.Error(t, next(t, e).Gap)
	m := next(t, e)
	require.Equal(t, Message{At: m.At}, m, "heard again")
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), codec.MessageUnlock)
	require.Equal(t, "orders", next(t, e).Name)
}

func TestWhoseChannelsAreBoundedListensToAllOfThem(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", "nopass", "+psubscribe", "&redisson_lock__channel:*")
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", s.Addr(), redis.DialUsername("onlooker"), redis.DialPassword("x"))
	}
	e := run(t, dial, "orders")
	s.Do(t, "PUBLISH", codec.LockChannel("other"), codec.MessageUnlock)
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), codec.MessageUnlock)
	require.Equal(t, "orders", next(t, e).Name)

	s.Do(t, "ACL", "SETUSER", "onlooker", "resetchannels", "&other*")
	_, err := Listen(t.Context(), dial, "orders", listing.Match("orders"))
	require.ErrorContains(t, err, "NOPERM")
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, 10*time.Millisecond, "it has hung up")
}
