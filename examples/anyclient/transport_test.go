package anyclient

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// redigoConn adapts a redigo connection to Conn.
type redigoConn struct{ redis.Conn }

func (c redigoConn) Do(command string, args ...any) (any, error) {
	reply, err := c.Conn.Do(command, args...)
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return nil, &transport.ServerError{Text: string(refusal)}
	}
	return plain(reply), err
}

// plain replaces redigo errors inside an array with transport errors.
func plain(reply any) any {
	switch r := reply.(type) {
	case []any:
		for i := range r {
			r[i] = plain(r[i])
		}
	case redis.Error:
		return &transport.ServerError{Text: string(r)}
	}
	return reply
}

// over returns the transport to the server at addr.
func over(addr string) *Transport {
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", addr) }
	return New(func(ctx context.Context) (Conn, error) {
		conn, err := dial(ctx)
		return redigoConn{conn}, err
	}, pubsub.Config{Dial: dial})
}

func TestTransportConforms(t *testing.T) {
	testlevel.All(t, "the whole suite for an example, a server for each of its cases")
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Harness(proxy)
		h.New = func(testing.TB) transport.Transport { return over(proxy.Addr()) }
		h.Do = server.Do
		h.Stop = func(testing.TB) {
			proxy.Refuse(true)
			proxy.Reset()
			server.Kill()
		}
		h.Start = func(testing.TB) {
			server.Restart()
			proxy.Refuse(false)
		}
		return h
	})
}

// docs/transport.md promises it. The lines before the first constant are imports.
func TestTransportFitsHundredLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("transport.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(text), "\nconst ")
	require.True(t, found)
	code := 1
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			code++
		}
	}
	require.LessOrEqual(t, code, 100)
}
