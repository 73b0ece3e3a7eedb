package goredis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/exported"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// badInput are the exported functions, and what tries each with values that its types
// permit and nobody wants. Options are tried with New.
var badInput = map[string]func(t *testing.T){
	"goredis.New":        badClients,
	"goredis.WithLogger": func(t *testing.T) { t.Helper(); options(t, WithLogger, nil, nil, new(slog.Logger)) },
	"goredis.WithReplyLimit": func(t *testing.T) {
		t.Helper()
		options(t, WithReplyLimit,
			[]time.Duration{0, -1, 1, leastReplyLimit - 1, time.Hour + 1, math.MaxInt64, math.MinInt64}, leastReplyLimit, time.Hour)
	},
	"goredis.WithShardedPubSub": func(t *testing.T) {
		t.Helper()
		options(t, WithShardedPubSub,
			[]transport.Sharding{transport.ShardingOff + 1, 255}, transport.ShardingOn, transport.ShardingOff)
	},
}

func TestExportedFunctionsStandBadInput(t *testing.T) {
	t.Parallel()
	for name, try := range badInput {
		t.Run(name, func(t *testing.T) { t.Parallel(); try(t) })
	}
}

func TestEveryExportedFunctionHasARowOfBadInput(t *testing.T) {
	t.Parallel()
	names := exported.Names(t, ".")
	for name := range names {
		assert.Contains(t, badInput, name, "it is tried with no bad input: add a row")
	}
	for name := range badInput {
		assert.Contains(t, names, name, "it does not exist any more")
	}
}

// options tries an option with values that are refused, and with others, which do no harm.
func options[T any](t *testing.T, option func(T) Option, refused []T, harmless ...T) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr()})
	for i, value := range refused {
		tr, err := New(t.Context(), client, nil, option(value), nil)
		assert.ErrorContains(t, err, "goredis: ", "value %d", i)
		assert.Less(t, len(fmt.Sprint(err)), 200)
		assert.Nil(t, tr)
	}
	for i, value := range harmless {
		tr, err := New(t.Context(), client, nil, option(value), nil)
		require.NoError(t, err, "value %d", i)
		reply, err := ask(tr, "ECHO", "it works")
		assert.NoError(t, err, "value %d", i)
		assert.Equal(t, []byte("it works"), reply)
		assert.NoError(t, tr.Close())
	}
	assert.NoError(t, client.Close())
}

// badClients are of no use, or of none any more. What one is told has a class and comes
// in time.
func badClients(t *testing.T) {
	t.Helper()
	for _, c := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil), other{}} {
		tr, err := New(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.Nil(t, tr)
	}
	works := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr()})
	require.PanicsWithValue(t, "goredis: nil Context", func() { _, _ = New(nil, works) }) //nolint:staticcheck // the mistake
	require.Panics(t, func() { _, _ = New(t.Context(), &redis.Client{}) }, "that is documented")
	require.Panics(t, func() { _, _ = New(t.Context(), &redis.ClusterClient{}) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tr, err := New(ended, works)
	require.NoError(t, err, "nothing is asked")
	_, err = ask(tr, "PING")
	require.NoError(t, err)
	require.NoError(t, works.Close())
	_, err = ask(tr, "PING")
	require.NoError(t, err, "its connections are its own")
	require.NoError(t, tr.Close())

	nowhere := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	_, err = New(ended, nowhere)
	require.ErrorIs(t, err, transport.ErrNotSent)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, nowhere.Close())

	noConn := func(context.Context, string, string) (net.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
	for want, c := range map[string]redis.UniversalClient{
		"connection refused": redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}),
		"no connection":      redis.NewClient(&redis.Options{Dialer: noConn}),
		"no client": redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"127.0.0.1:1"}, NewClient: func(*redis.Options) *redis.Client { return nil },
		}),
		"no way": redis.NewFailoverClient(&redis.FailoverOptions{
			SentinelAddrs: []string{""}, MasterName: "",
			Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") },
		}),
	} {
		tr, err := New(t.Context(), c, WithShardedPubSub(transport.ShardingOn))
		require.NoError(t, err, want)
		_, err = ask(tr, "PING")
		require.ErrorIs(t, err, transport.ErrNotSent)
		t.Log(err)
		require.ErrorContains(t, err, want)
		_, err = tr.Subscribe(ended, "channel")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, tr.Close())
		_ = c.Close() // it may have nothing to close
	}
}

// other is a client that nobody has heard of.
type other struct{ redis.UniversalClient }
