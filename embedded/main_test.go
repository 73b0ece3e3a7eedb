package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds waits for what should happen at once.
const soon = 10 * time.Second

func start(t *testing.T, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Server) redis.Conn {
	t.Helper()
	c, err := s.Dial(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func do(t *testing.T, c redis.Conn, cmd string, args ...any) any {
	t.Helper()
	reply, err := c.Do(cmd, args...)
	require.NoError(t, err, "%s %v", cmd, args)
	return reply
}

// subscribe sends cmd and waits for its acknowledgement.
func subscribe(t *testing.T, c redis.Conn, cmd, channel string) {
	t.Helper()
	require.NoError(t, c.Send(cmd, channel))
	require.NoError(t, c.Flush())
	push, err := redis.Values(redis.ReceiveWithTimeout(c, soon))
	require.NoError(t, err)
	require.Equal(t, []any{[]byte("subscribe"), []byte(channel), int64(1)}, push)
}

func receive(t *testing.T, c redis.Conn) []string {
	t.Helper()
	got, err := redis.Strings(redis.ReceiveWithTimeout(c, soon))
	require.NoError(t, err)
	return got
}
