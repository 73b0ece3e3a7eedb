package redisconn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
)

func TestAReplyIsOwedForLessThanALease(t *testing.T) {
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

func TestWithoutHooksAndLoggerThereIsSilence(t *testing.T) {
	t.Parallel()
	var cfg redisconn.Config
	require.Nil(t, cfg.OnReconnect("commands"))
	require.Nil(t, cfg.LoggerWith("node", "a:1"))
	var reported []string
	cfg.Reconnected = func(connection string) { reported = append(reported, connection) }
	cfg.OnReconnect("subscriptions")()
	require.Equal(t, []string{"subscriptions"}, reported)
}
