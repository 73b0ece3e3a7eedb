package embedded

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestPortAndPipesShareData(t *testing.T) {
	t.Parallel()
	s := start(t)
	tcp, err := redis.DialURL(s.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, tcp.Close()) }()
	do(t, tcp, "SET", "k", "v")
	require.Equal(t, []byte("v"), do(t, dial(t, s), "GET", "k"))
	require.NotEqual(t, s.Addr(), start(t).Addr())
}

func TestWithAddrListensOrFails(t *testing.T) {
	t.Parallel()
	first, err := Start()
	require.NoError(t, err)
	addr := first.Addr()
	_, err = Start(WithAddr(addr))
	require.ErrorContains(t, err, "embedded: listen tcp "+addr)
	first.Close()
	require.Equal(t, addr, start(t, WithAddr(addr)).Addr())
}

func TestWithInProcessOpensNoPort(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	require.Empty(t, s.Addr())
	require.Empty(t, s.URL())
	require.Equal(t, "PONG", do(t, dial(t, s), "PING"))
}

func TestDialNetServesOtherClients(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	c, err := redis.Dial("tcp", "ignored:1", redis.DialContextFunc(s.DialNet), redis.DialClientName("x"))
	require.NoError(t, err)
	require.Equal(t, "PONG", do(t, c, "PING"))
	require.NoError(t, c.Close())

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.DialNet(ctx, "", "")
	require.ErrorIs(t, err, context.Canceled)
}

func TestKeysExpireOnBubbleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		c := dial(t, s)
		do(t, c, "SET", "k", "v", "PX", time.Hour.Milliseconds())
		time.Sleep(time.Hour - time.Millisecond)
		require.EqualValues(t, 1, do(t, c, "PTTL", "k"))
		require.EqualValues(t, 1, do(t, c, "EVAL", "return redis.call('exists', KEYS[1])", 1, "k"))
		time.Sleep(time.Millisecond)
		require.EqualValues(t, 0, do(t, c, "EVAL", "return redis.call('exists', KEYS[1])", 1, "k"))
	})
}

func TestMessagesDeliveredInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		sub := dial(t, s)
		subscribe(t, sub, "SUBSCRIBE", "ch")
		begun := time.Now()
		go func() {
			time.Sleep(time.Hour)
			c, err := s.Dial(context.Background())
			if err == nil {
				_, _ = c.Do("PUBLISH", "ch", "hello") // checked by the subscriber
				_ = c.Close()
			}
		}()
		got, err := redis.Strings(redis.ReceiveWithTimeout(sub, 2*time.Hour))
		require.NoError(t, err)
		require.Equal(t, []string{"message", "ch", "hello"}, got)
		require.Equal(t, time.Hour, time.Since(begun))
		_, err = redis.ReceiveWithTimeout(sub, time.Hour)
		require.Error(t, err)
		require.Equal(t, 2*time.Hour, time.Since(begun))
	})
}

func TestShardedPubSubIsAliasForPubSub(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	sub, c := dial(t, s), dial(t, s)
	subscribe(t, sub, "SSUBSCRIBE", "ch")
	require.EqualValues(t, 1, do(t, c, "SPUBLISH", "ch", "plain"))
	require.Equal(t, []string{"message", "ch", "plain"}, receive(t, sub))
	n := do(t, c, "EVAL", "return redis.call(ARGV[1], KEYS[1], ARGV[2])", 1, "ch", "spublish", "scripted")
	require.EqualValues(t, 1, n)
	require.Equal(t, []string{"message", "ch", "scripted"}, receive(t, sub))
	require.NoError(t, sub.Send("SUNSUBSCRIBE", "ch"))
	require.NoError(t, sub.Flush())
	push, err := redis.Values(sub.Receive())
	require.NoError(t, err)
	require.Equal(t, []any{[]byte("unsubscribe"), []byte("ch"), int64(0)}, push)
	require.EqualValues(t, 0, do(t, c, "SPUBLISH", "ch", "nobody"))
}

func TestBinaryNamesAccepted(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := dial(t, s)
	const name = "a\xff{b}"
	do(t, c, "HSET", name, "f\xfe", "1")
	require.Equal(t, []any{[]byte(name)}, do(t, c, "KEYS", "a?{b}"))
	require.Equal(t, []any{[]byte("0"), []any{[]byte(name)}}, do(t, c, "SCAN", "0", "match", "a?{b}"))
	require.Equal(t, []any{[]byte("0"), []any{[]byte("f\xfe"), []byte("1")}}, do(t, c, "HSCAN", name, "0", "MATCH", "f?"))
}

func TestRoleReportsMasterWithoutReplicas(t *testing.T) {
	t.Parallel()
	require.Equal(t, []any{[]byte("master"), int64(0), []any{}}, do(t, dial(t, start(t)), "ROLE"))
}

func TestSlowReaderDisconnectedWithoutDelayingOthers(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	require.Equal(t, 32<<20, s.limit)
	s.limit = 1 << 20 // the default limit takes long to fill
	sub, c := dial(t, s), dial(t, s)
	subscribe(t, sub, "SUBSCRIBE", "ch")
	message := make([]byte, 32<<10)
	sent := 0
	for do(t, c, "PUBLISH", "ch", message).(int64) == 1 {
		sent++
		// The server may take a moment to remove a closed connection.
		require.Less(t, sent, 1000, "the server does not disconnect it")
	}
	require.GreaterOrEqual(t, sent, 31)
	require.Equal(t, "PONG", do(t, c, "PING"))
}

func TestLargePipelineNeedsOneGoroutine(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, WithInProcess()))
	const n = 2000
	for i := range n {
		require.NoError(t, c.Send("ECHO", strconv.Itoa(i)))
	}
	require.NoError(t, c.Flush())
	for i := range n {
		got, err := redis.Int(redis.ReceiveWithTimeout(c, soon))
		require.NoError(t, err)
		require.Equal(t, i, got)
	}
}

func TestQuitRepliesBeforeConnectionCloses(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("*1\r\n$4\r\nQUIT\r\n"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", string(buf[:n]))
	_, err = c.Read(buf)
	require.ErrorIs(t, err, io.EOF)
}

func TestCloseDisconnectsAndRejectsClients(t *testing.T) {
	t.Parallel()
	s, err := Start()
	require.NoError(t, err)
	addr := s.Addr()
	idle, blocked := dial(t, s), dial(t, s)
	require.NoError(t, blocked.Send("BLPOP", "list", 0))
	require.NoError(t, blocked.Flush())
	require.Eventually(t, func() bool { return s.mini.CommandCount() == 1 }, soon, time.Millisecond)
	s.Close()
	s.Close()
	_, err = idle.Do("PING")
	require.Error(t, err)
	_, err = redis.ReceiveWithTimeout(blocked, soon)
	require.Error(t, err)
	_, err = s.Dial(context.Background())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	require.Equal(t, addr, s.Addr())
}

func TestCloseUnderLoadLeaksNothing(t *testing.T) {
	t.Parallel()
	for range 5 {
		s, err := Start()
		require.NoError(t, err)
		var wg sync.WaitGroup
		running := make(chan struct{}, 8)
		for i := range 8 {
			wg.Go(func() {
				c, err := s.Dial(context.Background())
				if i%2 == 0 {
					c, err = redis.DialURL(s.URL())
				}
				for err == nil {
					// When the connection closes, some commands have been read but not run.
					_ = c.Send("EVAL", "return redis.call('incr', KEYS[1])", 1, "k")
					for range 30 {
						_ = c.Send("INFO", "clients")
					}
					_, err = c.Do("")
					select {
					case running <- struct{}{}:
					default:
					}
				}
				if c != nil {
					_ = c.Close() // already closed by the server
				}
			})
		}
		for range 8 {
			<-running
		}
		s.Close()
		wg.Wait()
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds waits for events that should happen immediately.
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
