package rreadwritelock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Of the readers of a process that wait one listens. When it gives up another one does, at once
// and not with its next look.
func TestAReaderThatListensForOthersHasASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client := func() *redlatch.Client {
			c, err := redlatch.New(srv.Server.Dial)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			return c
		}
		far, near := rreadwritelock.New(client(), "job"), rreadwritelock.New(client(), "job")
		w := take(t, far.Write())
		ctx, cancel := context.WithCancel(t.Context())
		first := later(ctx, near.Read())
		synctest.Wait()
		second := later(t.Context(), near.Read())
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-first).Err, context.Canceled)
		synctest.Wait()
		unlocked := time.Now()
		unlock(t, w)
		came := <-second
		require.NoError(t, came.Err)
		require.Zero(t, time.Since(unlocked))
		unlock(t, came.Hold)
	})
}
