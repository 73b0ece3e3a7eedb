package goredis

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// recorder records the channels for which go-redis counts messages. Its other methods do nothing.
type recorder struct {
	mu       sync.Mutex
	channels []string
}

func (r *recorder) RecordPubSubMessage(_ context.Context, _ redis.ConnInfo, _, channel string, _ bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels = append(r.channels, channel)
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.channels)
}

func (*recorder) RecordOperationDuration(context.Context, time.Duration, redis.Cmder, int, error, redis.ConnInfo, int) {
}

func (*recorder) RecordPipelineOperationDuration(context.Context, time.Duration, string, int, int, error, redis.ConnInfo, int) {
}
func (*recorder) RecordConnectionCreateTime(context.Context, time.Duration, redis.ConnInfo) {}
func (*recorder) RecordConnectionRelaxedTimeout(context.Context, int, redis.ConnInfo, string, string) {
}
func (*recorder) RecordConnectionHandoff(context.Context, redis.ConnInfo, string)         {}
func (*recorder) RecordError(context.Context, string, redis.ConnInfo, string, bool, int)  {}
func (*recorder) RecordMaintenanceNotification(context.Context, redis.ConnInfo, string)   {}
func (*recorder) RecordConnectionWaitTime(context.Context, time.Duration, redis.ConnInfo) {}
func (*recorder) RecordConnectionClosed(context.Context, redis.ConnInfo, string, error)   {}
func (*recorder) RecordStreamLag(context.Context, time.Duration, redis.ConnInfo, string, string, string) {
}

// go-redis labels message counts with the channel. It does not see the messages of locks, which
// Redlatch reads itself, but it does see the program's own.
//
// It is not parallel because a process has one recorder.
func TestLockMessagesNotCountedByGoRedis(t *testing.T) {
	r := &recorder{}
	redis.SetOTelRecorder(r)
	defer redis.SetOTelRecorder(nil)
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer func() { require.NoError(t, rdb.Close()) }()
	client, err := New(t.Context(), rdb)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	theirs, err := redlatch.Open(t.Context(), srv.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, theirs.Close()) }()

	l := rlock.New(client, redistest.Key(t))
	hold, err := rlock.New(theirs, l.Name()).Lock(t.Context())
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		h, err := l.Lock(t.Context())
		if err == nil {
			err = h.Unlock()
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return client.Stats().Subscriptions == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, hold.Unlock())
	require.NoError(t, <-done)
	require.NoError(t, rdb.Publish(t.Context(), "news", "hello").Err())
	require.Contains(t, r.seen(), "news")
	for _, channel := range r.seen() {
		require.NotContains(t, channel, l.Name())
	}
}

func TestNewSurvivesBadClients(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	sentinels := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	for _, c := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil), other{}, ring, sentinels} {
		tr, err := newTransport(t.Context(), c)
		require.ErrorContains(t, err, "goredis: ", "%T", c)
		require.ErrorIs(t, err, redlatch.ErrInvalid, "%T", c)
		require.Nil(t, tr)
	}
	require.NoError(t, errors.Join(ring.Close(), sentinels.Close()))
	works := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr()})
	require.PanicsWithValue(t, "goredis: nil Context", func() { _, _ = New(nil, works) }) //nolint:staticcheck // the mistake
	require.Panics(t, func() { _, _ = New(t.Context(), &redis.Client{}) }, "as documented")
	require.Panics(t, func() { _, _ = New(t.Context(), &redis.ClusterClient{}) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tr, err := newTransport(ended, works)
	require.NoError(t, err, "no query is sent")
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
		"returned nil": redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"127.0.0.1:1"}, NewClient: func(*redis.Options) *redis.Client { return nil },
		}),
		"no way": redis.NewFailoverClient(&redis.FailoverOptions{
			SentinelAddrs: []string{""}, MasterName: "",
			Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") },
		}),
	} {
		tr, err := newTransport(t.Context(), c, nil, redlatch.WithShardedPubSub(transport.ShardingOn))
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

// other is a client whose type is unknown.
type other struct{ redis.UniversalClient }
