package redisconn

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// A server that has no room for another client says so in answer to the first command, and hangs up.
// That is no refusal of the name, after which the connection would be used.
func TestAServerWithoutRoomDoesNotRefuseTheName(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := Config{ClientName: "app", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	dial := cfg.Naming()(func(context.Context) (redis.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Read(make([]byte, 1024))
			_, _ = io.WriteString(theirs, "-ERR max number of clients reached\r\n")
			_ = theirs.Close()
		}()
		return redis.NewConn(ours, 0, 0), nil
	})
	_, err := dial(t.Context())
	require.EqualError(t, err, "ERR max number of clients reached")
	require.Empty(t, log.String())
}
