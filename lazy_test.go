package redlatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// lazily opens a client of a server that is not there yet.
func lazily(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), url, append(opts, redlatch.WithLazyConnect())...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// A pod that starts before its server.
func TestLazyClientWaitsForItsServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv.Addr())
	p.Refuse(true)
	_, err := redlatch.Open(t.Context(), p.URL())
	require.ErrorIs(t, err, redlatch.ErrNotSent, "without the option")

	lock := rlock.New(lazily(t, p.URL(), redlatch.WithCommandTimeout(10*time.Second)), redistest.Key(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = lock.Lock(ctx)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	came := make(chan error, 1)
	go func() {
		hold, err := lock.Lock(t.Context())
		if err == nil {
			err = hold.Unlock()
		}
		came <- err
	}()
	select {
	case err := <-came:
		require.FailNow(t, "it has not waited", "%v", err)
	case <-time.After(time.Second):
	}
	p.Refuse(false)
	require.NoError(t, <-came)
}

func TestLazyClientsOfAllKindsConnectToNothing(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://127.0.0.1:1", "rediss://127.0.0.1:1", "unix:///nowhere",
		"redis-sentinel://127.0.0.1:1/mymaster",
		"redis-cluster://127.0.0.1:1?sharded_pubsub=on", "rediss-cluster://127.0.0.1:1?sharded_pubsub=off",
	} {
		client := lazily(t, url, redlatch.WithCommandTimeout(100*time.Millisecond))
		_, err := rlock.New(client, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotSent, url)
	}
}

// How messages are published cannot be guessed.
func TestLazyClientOfAClusterNeedsThePublishCommand(t *testing.T) {
	t.Parallel()
	const url = "redis-cluster://user:secret@127.0.0.1:1"
	_, err := redlatch.Open(t.Context(), url, redlatch.WithLazyConnect())
	require.ErrorContains(t, err, "?sharded_pubsub=on")
	require.NotContains(t, err.Error(), "secret")
	require.NotErrorIs(t, err, redlatch.ErrNotSent, "nothing was tried")
}

func TestLazyOpenRefusesAddressesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"localhost:6379", "redis://", "redis://localhost?foo=1", "redis-sentinel://localhost"} {
		_, err := redlatch.Open(t.Context(), url, redlatch.WithLazyConnect())
		require.Error(t, err, url)
	}
}
