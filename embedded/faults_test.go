package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestFailWithRejectsCommandsUntilHealed(t *testing.T) {
	t.Parallel()
	const loading = "LOADING Redis is loading the dataset in memory"
	s := start(t, WithInProcess())
	c := dial(t, s)
	s.FailWith(loading)
	for _, cmd := range [][]any{{"SET", "k", "v"}, {"SUBSCRIBE", "ch"}, {"EVAL", "return 1", 0}} {
		_, err := c.Do(cmd[0].(string), cmd[1:]...)
		require.Equal(t, redis.Error(loading), err)
	}
	s.Heal()
	require.Nil(t, do(t, c, "GET", "k"))
}

func TestLoseRepliesRunsCommandAndDisconnects(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	s.LoseReplies(2)
	for range 2 {
		_, err := dial(t, s).Do("INCR", "k")
		requireCut(t, err)
	}
	require.EqualValues(t, 3, do(t, dial(t, s), "INCR", "k"))

	s.LoseReplies(1)
	s.Heal()
	require.EqualValues(t, 4, do(t, dial(t, s), "INCR", "k"))
}

func TestLoseRepliesOverTCP(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, err := redis.DialURL(s.URL())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	s.LoseReplies(1)
	_, err = c.Do("INCR", "k")
	requireCut(t, err)
	require.EqualValues(t, 2, do(t, dial(t, s), "INCR", "k"))
}

func TestLoseRepliesKeepsErrorsAndSubscribers(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	sub, c := dial(t, s), dial(t, s)
	s.LoseReplies(1)
	subscribe(t, sub, "SUBSCRIBE", "ch")
	_, err := c.Do("EVALSHA", "0123456789012345678901234567890123456789", 0)
	require.ErrorContains(t, err, "NOSCRIPT")
	_, err = c.Do("EVAL", "return redis.call('publish', 'ch', 'm')", 0)
	requireCut(t, err)
	require.Equal(t, []string{"message", "ch", "m"}, receive(t, sub))
	require.Equal(t, "PONG", do(t, dial(t, s), "PING"))
}

func TestDropSubscribersKeepsOtherConnections(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	sub, psub, c := dial(t, s), dial(t, s), dial(t, s)
	subscribe(t, sub, "SUBSCRIBE", "ch")
	require.NoError(t, psub.Send("PSUBSCRIBE", "c*"))
	require.NoError(t, psub.Flush())
	_, err := psub.Receive()
	require.NoError(t, err)
	s.DropSubscribers()
	for _, gone := range []redis.Conn{sub, psub} {
		_, err = redis.ReceiveWithTimeout(gone, soon)
		requireCut(t, err)
	}
	require.Equal(t, "PONG", do(t, c, "PING"))
	require.Eventually(t, func() bool { return do(t, c, "PUBLISH", "ch", "m") == int64(0) }, soon, time.Millisecond)
	again := dial(t, s)
	subscribe(t, again, "SUBSCRIBE", "ch")
	require.EqualValues(t, 1, do(t, c, "PUBLISH", "ch", "m"))
}

func TestDropConnectionsAcceptsNewOnes(t *testing.T) {
	t.Parallel()
	s := start(t, WithInProcess())
	conns := []redis.Conn{dial(t, s), dial(t, s)}
	subscribe(t, conns[0], "SUBSCRIBE", "ch")
	do(t, conns[1], "SET", "k", "v")
	s.DropConnections()
	for _, c := range conns {
		_, err := redis.ReceiveWithTimeout(c, soon)
		requireCut(t, err)
	}
	require.Equal(t, []byte("v"), do(t, dial(t, s), "GET", "k"))
}

func TestFastForwardAgesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		c := dial(t, s)
		do(t, c, "SET", "k", "v", "PX", 10_000)
		s.FastForward(4 * time.Second)
		require.EqualValues(t, 6000, do(t, c, "PTTL", "k"))
		time.Sleep(time.Second)
		require.EqualValues(t, 5000, do(t, c, "PTTL", "k"))
	})
}

func TestSetTimeFreezesClockUntilZeroTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, WithInProcess())
		c := dial(t, s)
		do(t, c, "SET", "k", "v", "PX", 10_000)
		ahead := time.Now().Add(3 * time.Second)
		s.SetTime(ahead)
		time.Sleep(time.Minute)
		require.EqualValues(t, 7000, do(t, c, "PTTL", "k"))
		require.EqualValues(t, ahead.Unix(), serverTime(t, c))

		s.SetTime(time.Time{})
		require.EqualValues(t, 7000, do(t, c, "PTTL", "k"))
		time.Sleep(time.Second)
		require.EqualValues(t, 6000, do(t, c, "PTTL", "k"))
		require.EqualValues(t, time.Now().Unix(), serverTime(t, c))
	})
}

// requireCut checks that err reports a closed connection. Pipes have two such errors.
func requireCut(t *testing.T, err error) {
	t.Helper()
	require.Truef(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe), "not cut: %v", err)
}

func serverTime(t *testing.T, c redis.Conn) int {
	t.Helper()
	parts, err := redis.Ints(c.Do("TIME"))
	require.NoError(t, err)
	return parts[0]
}

// send writes bytes to a new connection, and returns the replies until the server closes it.
func send(t *testing.T, s *Server, text string) (said string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	tcp, ok := c.(*net.TCPConn)
	require.True(t, ok)
	// Each of these fails if the server has closed the connection without reading everything.
	_, _ = io.WriteString(c, text)
	_ = tcp.CloseWrite()
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func TestMalformedRequestClosesOnlyItsConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	bystander := dial(t, s)
	for _, text := range []string{
		"*1\r\n$9223372036854775807\r\n", "*1\r\n$99999999999999\r\n", "*1\r\n$-9223372036854775808\r\n",
		"*9223372036854775807\r\n$4\r\nPING\r\n", "*1048577\r\n$4\r\nPING\r\n", "*0\r\n", "*-1\r\n", "*-0\r\n", "*+0\r\n",
		"*2\r\n$4\r\nECHO\r\n$67108864\r\n", "*1\r\n$-1\r\n", "*1\r\n*1\r\n*1\r\n", strings.Repeat("*1\r\n", 1000),
		// Requests that a length check must parse as miniredis does.
		"*1\r\n$200\n$9223372036854775807\r\n", "*1\r\n$-0\r\n+x$9223372036854775807\r\n", "*1\r\n+a\r\n", "*1\r\n$0x4\r\nPING\r\n",
		"PING\r\n", "\r\n", "\n", "*\r\n", "*1\r\n$\r\n", "\x16\x03\x01", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("*", 1<<20),
	} {
		require.Empty(t, send(t, s, text), "%.40q", text)
		require.Equal(t, "PONG", do(t, bystander, "PING"), "%.40q", text)
	}
	require.Equal(t, "+PONG\r\n+PONG\r\n", send(t, s, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nping\r\n*0\r\n"))
}

// Miniredis panics on some commands while it holds its mutex.
func TestPanickingCommandClosesOnlyItsConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	bystander := dial(t, s)
	do(t, bystander, "ZADD", "z", 1, "a")
	for _, args := range [][]string{
		{"ZSCAN", "z", "-1"}, {"HRANDFIELD", "missing", "-9223372036854775808"},
		{"EVAL", "return redis.call('ZSCAN', 'z', '-1')", "0"},
		{"KEYS", "a[c-a]"}, {"SCAN", "0", "MATCH", "\xff"}, {"PSUBSCRIBE", `a\\E(`}, {"PUBSUB", "CHANNELS", "a[[:alpha:]"},
	} {
		want := "slice bounds out of range"
		if strings.Contains("KEYS SCAN PSUBSCRIBE PUBSUB", args[0]) {
			want = "regexp: Compile"
		}
		text := fmt.Sprintf("*%d\r\n", len(args))
		for _, arg := range args {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
		}
		require.Contains(t, send(t, s, text), want, args)
		require.Equal(t, int64(1), do(t, bystander, "ZCARD", "z"), args)
		// The reply arrives although more commands follow.
		text += strings.Repeat("*1\r\n$4\r\nPING\r\n", 10)
		require.Contains(t, send(t, s, text), want, args)
	}
}
