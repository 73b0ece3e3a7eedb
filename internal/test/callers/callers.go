// Package callers provides clients, and calls with time limits, for tests of locks.
package callers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// Soon is the time limit for events that should happen.
const Soon = 30 * time.Second

// Connect opens a client that is closed when the test ends.
func Connect(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// InProcess opens a client of an in-memory server. It works with fake time, and is closed when the test ends.
func InProcess(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(srv.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// Over opens a client of an in-memory server that uses the transport returned by wrap.
func Over(t *testing.T, srv *redistest.MiniServer, wrap func(transport.Transport) transport.Transport, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.NewWithTransport(wrap(redisconn.NewRedigo(redisconn.Config{
		Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
		DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// Stalling is Over with a transport that can delay calls and replies.
func Stalling(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) (*faketransport.Stalling, *redlatch.Client) {
	t.Helper()
	tr := &faketransport.Stalling{}
	return tr, Over(t, srv, func(near transport.Transport) transport.Transport {
		tr.Transport = near
		return tr
	}, opts...)
}

// Within returns a context that is canceled after Soon or when the test ends.
func Within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Soon)
	t.Cleanup(cancel)
	return ctx
}

// Listening waits until n connections have subscribed to a channel.
func Listening(t *testing.T, s *redistest.Server, channel string, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		pair, _ := s.Do(t, "PUBSUB", "NUMSUB", channel).([]any)
		return len(pair) == 2 && pair[1] == n
	}, Soon, 5*time.Millisecond, "%d connections should listen to %s", n, channel)
}

// Acquired is the result of a call.
type Acquired[Hold any] struct {
	Hold Hold
	Err  error
}

// Later makes a call in a goroutine.
func Later[Hold any](call func() (Hold, error)) <-chan Acquired[Hold] {
	came := make(chan Acquired[Hold], 1)
	go func() {
		h, err := call()
		came <- Acquired[Hold]{h, err}
	}()
	return came
}

// Must returns the hold. The test fails if the call does not return it within the bound.
func Must[Hold any](t *testing.T, came <-chan Acquired[Hold], bound time.Duration) Hold {
	t.Helper()
	select {
	case a := <-came:
		require.NoError(t, a.Err)
		return a.Hold
	case <-time.After(bound):
		require.FailNow(t, "it does not come")
		panic("not reached")
	}
}
