package badinput_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func TestDialFunctionsThatAreOfNoUseAreErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	nothing := func(context.Context, string) (redis.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
	fails := func(context.Context, string) (redis.Conn, error) { return nil, broken }
	here := func(context.Context) (string, error) { return "127.0.0.1:1", nil }
	seeds := []string{"127.0.0.1:1"}
	require.Panics(t, func() { _, _ = redlatch.NewCluster(nil, seeds, nothing) }) //nolint:staticcheck // the mistake
	for _, err := range []error{
		second(redlatch.NewCluster(t.Context(), nil, nothing)),
		second(redlatch.NewCluster(t.Context(), seeds, nil)),
		second(redlatch.NewCluster(t.Context(), seeds, fails, redlatch.WithShardedPubSub(9))),
		second(redlatch.NewSentinel(nil, nothing)), second(redlatch.NewSentinel(here, nil)),
	} {
		require.ErrorContains(t, err, "redlatch: ")
	}
	for want, dial := range map[string]func(context.Context, string) (redis.Conn, error){"broken": fails, "no connection": nothing} {
		_, err := redlatch.NewCluster(t.Context(), seeds, dial)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, want)
		_, err = redlatch.AskSentinels("m", seeds, dial)(t.Context())
		require.ErrorContains(t, err, want)
		for _, name := range []string{"", "named"} {
			t.Run(want+" "+name, func(t *testing.T) {
				t.Parallel()
				opts := []redlatch.Option{redlatch.WithCommandTimeout(time.Second), redlatch.WithClientName(name)}
				client, err := redlatch.NewSentinel(here, dial, opts...)
				require.ErrorContains(t, notSent(t, client, err), want)
				client, err = redlatch.New(func(ctx context.Context) (redis.Conn, error) { return dial(ctx, "") }, opts...)
				_ = notSent(t, client, err)
			})
		}
	}
	_, err := redlatch.AskSentinels("m", nil, fails)(t.Context())
	require.ErrorContains(t, err, "no Sentinel is known")
	_, err = redlatch.AskSentinels("m", seeds, nil)(t.Context())
	require.ErrorContains(t, err, "needs a dial function")
}

// notSent returns the error of a client that was made, and reaches nothing.
func notSent(t *testing.T, client *redlatch.Client, err error) error {
	t.Helper()
	require.NoError(t, err)
	_, err = rlock.New(client, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.NoError(t, client.Close())
	return err
}

func second(_ *redlatch.Client, err error) error { return err }

// TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch has a server announce a text of an
// exabyte. NewConn limits replies, too.
func TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer server.Close() //nolint:errcheck // the test is over
	go func() { _, _ = server.Write([]byte("$1152921504606846976\r\n")) }()
	conn := redlatch.LimitReplies(client)
	defer conn.Close() //nolint:errcheck // broken
	_, err := io.ReadAll(conn)
	require.ErrorContains(t, err, "more than")

	client, server = net.Pipe()
	defer server.Close() //nolint:errcheck // the test is over
	go func() { _, _ = server.Write([]byte("$1152921504606846976\r\n")) }()
	over := redlatch.NewConn(client, time.Second)
	defer over.Close() //nolint:errcheck // broken
	_, err = over.Receive()
	require.ErrorContains(t, err, "more than")
}
