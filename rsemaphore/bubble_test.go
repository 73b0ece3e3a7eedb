package rsemaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// inBubble returns a semaphore of one permit, which is taken, on two clients of a server inside a
// synctest bubble.
func inBubble(t *testing.T, near redlatch.Option, opts ...rsemaphore.Option) (*redistest.MiniServer, *rsemaphore.Expirable, *rsemaphore.Hold) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	semaphore := func(settings ...redlatch.Option) *rsemaphore.Expirable {
		c, err := redlatch.New(srv.Server.Dial, settings...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return rsemaphore.NewExpirable(c, "job", opts...)
	}
	far := semaphore()
	made, err := far.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, made)
	held, err := far.Acquire(t.Context(), 1)
	require.NoError(t, err)
	return srv, semaphore(near), held
}

// Time goes on in a bubble while several callers of a client wait: none waits for anything outside.
func TestSeveralCallersWaitInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sem, held := inBubble(t, nil)
		came := make(chan error, 2)
		for range 2 {
			go func() {
				h, err := sem.Acquire(t.Context(), 1)
				if err == nil {
					err = h.Release()
				}
				came <- err
			}()
		}
		time.Sleep(time.Second)
		require.NoError(t, held.Release())
		require.NoError(t, <-came)
		require.NoError(t, <-came)
	})
}

// Any client may release a permit by its id, as Java's release(id) does. The holder reports that as
// the likely cause of its loss.
func TestPermitReleasedByAnotherClientIsReportedAsSuch(t *testing.T) {
	for name, learns := range map[string]func(h *rsemaphore.Hold) error{
		"with its renewal": func(h *rsemaphore.Hold) error {
			<-h.Context(context.Background()).Done()
			return h.Err()
		},
		"with its release": (*rsemaphore.Hold).Release,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, other, held := inBubble(t, nil)
				n, err := other.Release(t.Context(), held.ID())
				require.NoError(t, err)
				require.Equal(t, 1, n)
				err = learns(held)
				require.ErrorIs(t, err, redlatch.LossTaken)
				require.ErrorContains(t, err, "released by another client")
				available, err := other.Available(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, available, "the permit is back once")
			})
		})
	}
}
