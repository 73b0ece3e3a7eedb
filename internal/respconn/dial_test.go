package respconn_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const patience = 10 * time.Second

// server accepts one connection and answers each command by its name. commands waits for the end of the
// connection and returns the commands.
func server(t *testing.T, answers map[string]string) (at redisurl.Server, commands func() string) {
	t.Helper()
	return serverCalling(t, func() {}, answers)
}

// serverCalling is like server, but calls unanswered for a command without a canned reply.
func serverCalling(t *testing.T, unanswered func(), answers map[string]string) (at redisurl.Server, commands func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	all := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		assert.NoError(t, err)
		var got []string
		in := bufio.NewReader(conn)
		for {
			words, err := redistest.ReadCommand(in)
			if err != nil {
				break
			}
			got = append(got, strings.Join(words, " "))
			_, _ = io.WriteString(conn, answers[words[0]])
			if answers[words[0]] == "" {
				unanswered()
			}
		}
		_, _ = conn.Close(), l.Close()
		all <- strings.Join(got, ", ")
	}()
	return redisurl.Server{Network: "tcp", Addr: l.Addr().String()}, func() string {
		select {
		case got := <-all:
			return got
		case <-time.After(patience):
			require.FailNow(t, "the connection has not ended")
			return ""
		}
	}
}

var welcome = map[string]string{"AUTH": "+OK\r\n", "SELECT": "+OK\r\n"}

func TestLoginSendsAddressCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user, password string
		db             int
		want           string
	}{
		{"", "", 0, ""},
		{"app", "", 0, ""},
		{"", "sesame", 0, "AUTH sesame"},
		{"app", "sesame", 3, "AUTH app sesame, SELECT 3"},
		{"", "", 2, "SELECT 2"},
	} {
		at, commands := server(t, welcome)
		at.User, at.Password, at.DB = c.user, c.password, c.db
		conn, err := respconn.Dialer{Timeout: patience, Write: time.Second}.Dial(t.Context(), at)
		require.NoError(t, err)
		require.NotNil(t, respconn.Below(conn), "it can be looked at without reading")
		require.NoError(t, conn.Close())
		require.Equal(t, c.want, commands())
	}
}

func TestLoginEndsWithContextOrTimeout(t *testing.T) {
	t.Parallel()
	for _, silent := range []string{"AUTH", "SELECT"} {
		answers := map[string]string{"AUTH": welcome["AUTH"], "SELECT": welcome["SELECT"], silent: ""}
		ctx, cancel := context.WithCancel(t.Context())
		at, commands := serverCalling(t, cancel, answers)
		at.Password, at.DB = "sesame", 3
		_, err := respconn.Dialer{Timeout: time.Hour, Write: patience}.Dial(ctx, at)
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "closed", "the cause, and not how it was done")
		require.Contains(t, commands(), silent)

		at, commands = server(t, answers)
		at.Password, at.DB = "sesame", 3
		_, err = respconn.Dialer{Timeout: 200 * time.Millisecond, Write: patience}.Dial(t.Context(), at)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		if other, err := net.Dial("tcp", at.Addr); err == nil { //nolint:noctx // it does not wait
			_ = other.Close() // in case a slow machine did not connect
		}
		commands() // the connection is closed at any stage
	}
}

func TestRejectedLoginClosesConnection(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"-WRONGPASS no\r\n": "WRONGPASS", "$99999999999\r\n": respconn.ErrLimit.Error(), "*99999999\r\n": respconn.ErrLimit.Error(),
	} {
		at, commands := server(t, map[string]string{"AUTH": answer})
		at.Password, at.DB = "sesame", 3
		_, err := respconn.Dialer{Timeout: patience, Write: time.Second}.Dial(t.Context(), at)
		require.ErrorContains(t, err, want)
		require.Equal(t, "AUTH sesame", commands(), "it goes no further")
	}
}

func TestRejectedLoginHidesPassword(t *testing.T) {
	t.Parallel()
	const unknown = "ERR unknown command 'AUTH', with args beginning with: "
	const noPassword = "ERR AUTH <password> called without any password configured for the default user."
	for _, c := range []struct{ user, answer, want string }{
		{"app", unknown + "'app' 'ses ame-open' ", "ERR unknown command 'AUTH', ..."}, // a replaced line end
		{"", unknown + "'sesame-open' ", unknown + "'..."},
		{"app", unknown + "'app' 'sesame-open' ", unknown + "'app' '..."},
		{"app", unknown + "'app' 'sesame-o' ", unknown + "'app' '..."}, // truncated by the server
		{"", "WRONGPASS no", "WRONGPASS no"},
		{"", "ERR max number of clients reached", "ERR max number of clients reached"},
	} {
		at, commands := server(t, map[string]string{"AUTH": "-" + c.answer + "\r\n"})
		at.User, at.Password = c.user, "sesame-open"
		_, err := respconn.Dialer{Timeout: patience, Write: time.Second}.Dial(t.Context(), at)
		require.EqualError(t, err, c.want)
		require.Contains(t, commands(), "AUTH")
	}
	at, commands := server(t, map[string]string{"AUTH": "-" + noPassword + "\r\n"})
	at.Password = "password"
	_, err := respconn.Dialer{Timeout: patience, Write: time.Second}.Dial(t.Context(), at)
	require.EqualError(t, err, noPassword, "the word is the server's own")
	require.Contains(t, commands(), "AUTH")
}

// The server, which may be hostile, reports its replicas' addresses.
func TestInvalidReplicaAddressErrorHidesPassword(t *testing.T) {
	t.Parallel()
	master, err := redisurl.Parse("redis://user:sesame-open@localhost:6379")
	require.NoError(t, err)
	for _, addr := range []string{"a b:6379", "a%zz:6379", "\x00:1", "[::1:6379", "", "host", "sesame@x\n:1", "127.0.0.1:99999"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // prevents DNS lookups
		_, err := respconn.Dialer{}.Dial(ctx, master.At(addr))
		require.Error(t, err, "%q", addr)
		require.NotContains(t, err.Error(), "sesame-open", "%q", addr)
	}
}
