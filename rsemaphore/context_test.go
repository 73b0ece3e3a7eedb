package rsemaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// The context of a hold proves nothing, so it keeps no caller from other permits, whatever became
// of the hold.
func TestAContextOfALostHoldTakesOtherPermits(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, s, 2)
	h := take(t, sem, 1, rsemaphore.WithLease(2*time.Second))
	ctx := context.WithoutCancel(h.Context(within(t)))
	other, err := sem.Acquire(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, other.Release())
	<-h.Context(t.Context()).Done()
	require.ErrorIs(t, h.Err(), redlatch.ErrLost)
	other, err = sem.Acquire(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, other.Release())
}
