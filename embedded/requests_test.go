package embedded

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// send writes bytes to a new connection, and returns what the server says until it closes it.
func send(t *testing.T, s *Server, text string) (said string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	tcp, ok := c.(*net.TCPConn)
	require.True(t, ok)
	// Each of these fails if the server has closed the connection without reading all.
	_, _ = io.WriteString(c, text)
	_ = tcp.CloseWrite()
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func TestMalformedRequestsEndTheConnectionOnly(t *testing.T) {
	t.Parallel()
	s := start(t)
	bystander := dial(t, s)
	for _, text := range []string{
		"*1\r\n$9223372036854775807\r\n", "*1\r\n$99999999999999\r\n", "*1\r\n$-9223372036854775808\r\n",
		"*9223372036854775807\r\n$4\r\nPING\r\n", "*1048577\r\n$4\r\nPING\r\n", "*0\r\n", "*-1\r\n", "*-0\r\n", "*+0\r\n",
		"*2\r\n$4\r\nECHO\r\n$67108864\r\n", "*1\r\n$-1\r\n", "*1\r\n*1\r\n*1\r\n", strings.Repeat("*1\r\n", 1000),
		// What a bound that reads the length in another way than miniredis would let through.
		"*1\r\n$200\n$9223372036854775807\r\n", "*1\r\n$-0\r\n+x$9223372036854775807\r\n", "*1\r\n+a\r\n", "*1\r\n$0x4\r\nPING\r\n",
		"PING\r\n", "\r\n", "\n", "*\r\n", "*1\r\n$\r\n", "\x16\x03\x01", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("*", 1<<20),
	} {
		require.Empty(t, send(t, s, text), "%.40q", text)
		require.Equal(t, "PONG", do(t, bystander, "PING"), "%.40q", text)
	}
	require.Equal(t, "+PONG\r\n+PONG\r\n", send(t, s, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nping\r\n*0\r\n"))
}

// Miniredis panics on some commands, and holds its mutex then.
func TestCommandThatPanicsEndsTheConnectionOnly(t *testing.T) {
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
		// The commands behind it do not take its reply away.
		text += strings.Repeat("*1\r\n$4\r\nPING\r\n", 10)
		require.Contains(t, send(t, s, text), want, args)
	}
}
