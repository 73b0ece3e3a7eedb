package connect

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// program listens, and answers each connection in its way.
func program(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
			_ = c.Close() // the other side may have closed it
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-over
	})
	return l.Addr().String()
}

// says is a program that says something first; answers is one that reads before.
func says(text string) func(net.Conn) {
	return func(c net.Conn) { talk(c, text) }
}

func answers(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			talk(c, text)
		}
	}
}

// talk says something, and reads on: closing a connection with unread bytes takes the text back.
func talk(c net.Conn, text string) {
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.WriteString(c, text)
	_, _ = io.Copy(io.Discard, c)
}

func TestAProgramThatIsNoRedisIsQuotedAndNotStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer func(net.Conn)
		says   string
	}{
		{says("SSH-2.0-OpenSSH_9.2p1\r\n"), `is no Redis: it answers "SSH-2.0-OpenSSH_9.2p1", as an SSH server does. Check the host and the port`},
		{answers("HTTP/1.1 400 Bad Request\r\n\r\n400"), `is no Redis: it answers "HTTP/1.1 400 Bad Request", as a web server does. Check the host and the port`},
		{says("220 mail.example ESMTP\r\n"), `is no Redis: it answers "220 mail.example ESMTP". Check`},
		{says(strings.Repeat("x", 100) + "\r\n"), `it answers "` + strings.Repeat("x", 58) + `..". Check`},
		{says("\x1b[2J\x00\r\n"), `it answers "\x1b[2J\x00". Check`},
		{answers("\x15\x03\x01\x00\x02\x02\x0a\n"), "speaks TLS: use --tls, or rediss://"},
	} {
		addr := program(t, c.answer)
		for _, scheme := range []string{"redis", "redis-cluster"} {
			s := at(t, scheme+"://"+addr)
			require.ErrorContains(t, second(s.Open(t.Context())), c.says, scheme)
			conn, err := s.Dial(t.Context())
			if err == nil { // the dial alone asks nothing
				_, err = conn.Do("PING")
				_ = conn.Close() // it is broken
				err = s.Problem(err)
			}
			require.ErrorContains(t, err, "what listens at "+scheme+"://"+addr+" ")
			require.NotContains(t, err.Error(), "Start one")
		}
	}
	s := redistest.Start(t)
	require.Nil(t, at(t, s.URL()).answer(), "Redis is called no Redis")
}

func TestAnAddressWithAnOptionThatItHasNotIsNotAskedAt(t *testing.T) {
	t.Parallel()
	for address, says := range map[string]string{
		"redis://h/0?dial_timeout=5s":  "one server has no options",
		"redis://h#1":                  "remove the #",
		"redis://h/orders":             "the database must be a number from 0",
		"redis://h/-1":                 "the database must be a number from 0",
		"redis://h/2147483648":         "the database must be a number from 0",
		"redis://h:99999":              "the port must be a number from 1 to 65535",
		"unix:///run/r.sock?db=x":      "the database must be a number from 0",
		"unix:///run/r.sock?timeout=1": "one option at most, db",
		"redis://:ab/cd@h":             "or put the password into REDIS_PASSWORD or a file for --password-file",
	} {
		_, err := New(Settings{Address: address})
		require.ErrorContains(t, err, says, address)
		require.NotContains(t, err.Error(), "Start one")
	}
	require.ErrorContains(t, at(t, "redis://h.invalid").Problem(&net.DNSError{Err: "no such host"}),
		"no such host. Check the host in --redis or REDIS_URL.")
}
