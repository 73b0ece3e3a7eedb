package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestOpenFailsWithoutServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	_, err := redlatch.Open(ctx, "redis://127.0.0.1:1")
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorContains(t, err, "redlatch: connect to redis://127.0.0.1:1: ")
}

func TestOpenHonorsContext(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := redlatch.Open(ctx, srv.URL(), redlatch.WithDialTimeout(time.Hour))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.ErrorContains(t, err, srv.Addr())
	srv.Resume()
}

func TestNewConnectsLazily(t *testing.T) {
	t.Parallel()
	srv := redistest.Mini(t, embedded.WithInProcess())
	dials := make(chan struct{}, 10)
	c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		dials <- struct{}{}
		return srv.Server.Dial(ctx)
	})
	require.NoError(t, err)
	closedWith(t, c)
	l := rlock.New(c, "job")
	require.Empty(t, dials)
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.Len(t, dials, 1)
	require.NoError(t, hold.Unlock())
	require.Len(t, dials, 1)
}

// All callers share the dials, with pauses that grow to a second.
func TestFailedDialReturnsErrNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason, dials := errors.New("no route to host"), 0
		c, err := redlatch.New(func(context.Context) (redis.Conn, error) {
			time.Sleep(time.Millisecond)
			dials++
			return nil, reason
		}, redlatch.WithCommandTimeout(10*time.Second))
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := rlock.New(c, redistest.Key(t)).Lock(t.Context())
				assert.ErrorIs(t, err, redlatch.ErrNotSent)
				assert.ErrorIs(t, err, reason)
			})
		}
		wg.Wait()
		require.NoError(t, c.Close())
		require.Greater(t, dials, 10)
		require.Less(t, dials, 40)
	})
}

func TestMissingArgumentsRejected(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"dial":      second(redlatch.New(nil)),
		"transport": second(redlatch.NewWithTransport(nil)),
		"url":       second(redlatch.Open(t.Context(), "")),
	} {
		require.ErrorIs(t, err, redlatch.ErrInvalid, name)
		require.True(t, strings.HasPrefix(err.Error(), "redlatch: "), "%s: %v", name, err)
	}
	require.PanicsWithValue(t, "redlatch: nil Client", func() { rlock.New(nil, "job") })
}

func second[T any](_ T, err error) error { return err }

// A program with a pool can reuse its dial function.
func TestPoolDialFunctionOpensSeparateConnections(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	pool := &redis.Pool{MaxActive: 1, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialURLContext(ctx, srv.URL())
	}}
	c, err := redlatch.New(pool.DialContext)
	require.NoError(t, err)
	requireWorks(t, srv, c)
	require.Zero(t, pool.ActiveCount())
	require.NoError(t, c.Close())
}

// closing is a transport that counts calls to Close.
type closing struct {
	transport.Transport
	times int
}

func (c *closing) PublishCommand() string { return "PUBLISH" }
func (c *closing) Close() error           { c.times++; return errStuck }

var errStuck = errors.New("stuck")

func TestCloseClosesTransportOnce(t *testing.T) {
	t.Parallel()
	tr := &closing{}
	c, err := redlatch.NewWithTransport(tr)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { assert.ErrorIs(t, c.Close(), errStuck) })
	}
	wg.Wait()
	require.ErrorIs(t, c.Close(), errStuck)
	require.Equal(t, 1, tr.times)
}

func TestCloseBeforeFirstUse(t *testing.T) {
	t.Parallel()
	c, err := redlatch.New(func(context.Context) (redis.Conn, error) { return nil, errStuck })
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = rlock.New(c, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
}

func TestCloseEndsConnectionsOnTheServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c, err := redlatch.Open(t.Context(), srv.URL())
	require.NoError(t, err)
	requireWorks(t, srv, c)
	require.Equal(t, 2, srv.Clients(t))
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return srv.Clients(t) == 0 }, soon, 5*time.Millisecond)
}

func TestClientIDsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[uuid.UUID]bool{}
	for range 20 {
		c, err := redlatch.NewWithTransport(&closing{})
		require.NoError(t, err)
		require.EqualValues(t, 7, c.ID().Version())
		seen[c.ID()] = true
		require.ErrorIs(t, c.Close(), errStuck)
	}
	require.Len(t, seen, 20)
}

// soon limits waits on a real server for events that should happen immediately.
const soon = 10 * time.Second

// dialled opens a client that is closed with the test.
func dialled(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	closedWith(t, c)
	return c
}

func closedWith(t *testing.T, c *redlatch.Client) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, c.Close()) })
}

// requireWorks waits for a lock that another owner holds, which uses both connections.
func requireWorks(t *testing.T, srv *redistest.Server, c *redlatch.Client) {
	t.Helper()
	l := rlock.New(c, redistest.Key(t))
	// Callers with a given owner do not queue locally behind a hold.
	other, err := l.Lock(t.Context(), rlock.WithOwner(codec.NewOwner(uuid.New(), 57)))
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		hold, err := l.Lock(t.Context(), rlock.WithWait(soon))
		if err == nil {
			err = hold.Unlock()
		}
		got <- err
	}()
	require.Eventually(t, func() bool {
		return slices.Contains(srv.Channels(t), codec.LockChannel(l.Name()))
	}, soon, time.Millisecond)
	require.NoError(t, other.Unlock())
	require.NoError(t, <-got)
}
