package redisconn_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestReplyLimitIsShorterThanLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, lease, want time.Duration }{
		{3 * time.Second, 30 * time.Second, 6 * time.Second},
		{3 * time.Second, 8 * time.Second, 2 * time.Second},
		{3 * time.Second, 0, 6 * time.Second},
		{100 * time.Millisecond, 30 * time.Second, 500 * time.Millisecond},
		{3 * time.Second, time.Second, 500 * time.Millisecond},
	} {
		cfg := redisconn.Config{Command: c.command, Lease: c.lease}
		require.Equal(t, c.want, cfg.ReplyLimit(), c)
	}
}

func TestNoLoggerOrHooksProducesNoOutput(t *testing.T) {
	t.Parallel()
	var cfg redisconn.Config
	require.Nil(t, cfg.OnReconnect("commands"))
	require.Nil(t, cfg.LoggerWith("node", "a:1"))
	var reported []string
	cfg.Reconnected = func(connection string) { reported = append(reported, connection) }
	cfg.OnReconnect("subscriptions")()
	require.Equal(t, []string{"subscriptions"}, reported)
}

// A full server replies with an error and hangs up. The error must not be mistaken for a rejection
// of the name.
func TestFullServerDoesNotRejectName(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := redisconn.Config{ClientName: "app", Logger: slog.New(slog.NewTextHandler(&log, nil))}
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

func TestMain(m *testing.M) {
	// Most of the time, the conformance suite's mutants are waiting.
	parallel := flag.Lookup("test.parallel").Value // not yet the test program's command line
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 6 {
		_ = parallel.Set("6") // any number is valid
	}
	redistest.Main(m)
}

// Otherwise losses would be noticed late, and nothing would fail.
var (
	_ engine.LossTeller = (*redisconn.Redigo)(nil)
	_ engine.LossTeller = (*cluster.Cluster)(nil)
)
