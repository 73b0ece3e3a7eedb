package redlatch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// soon bounds waits on a real server for what should happen at once.
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

// requireWorks waits for a lock that another owner has, so that both connections
// are used.
func requireWorks(t *testing.T, srv *redistest.Server, c *redlatch.Client) {
	t.Helper()
	l := rlock.New(c, redistest.Key(t))
	// For an owner that is given: such a hold is no reason to stand in line.
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
