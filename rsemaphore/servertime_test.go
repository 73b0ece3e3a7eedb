package rsemaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// All clocks are right, and the server's is asked for. One question is slow on its way there: half
// of that is not how far the server's clock is ahead.
func TestASlowQuestionForTheTimeTakesNoPermitFromItsHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	sem := rsemaphore.NewExpirable(connect(t, s.URL(), redlatch.WithServerTime()), redistest.Key(t))
	require.NoError(t, sem.SetPermits(within(t), 1))
	c := connect(t, p.URL(), redlatch.WithServerTime(), redlatch.WithCommandTimeout(soon))
	_, err := rlock.New(c, "connects").IsLocked(within(t))
	require.NoError(t, err)
	p.Latency(redistest.ToServer, 2400*time.Millisecond)
	far := rsemaphore.NewExpirable(c, sem.Name())
	_, err = far.Available(within(t))
	require.NoError(t, err)
	p.Latency(redistest.ToServer, 0)
	h := take(t, sem, 1, rsemaphore.WithLease(3*time.Second))
	time.Sleep(2200 * time.Millisecond)
	other, err := far.TryAcquire(within(t), 1)
	require.NoError(t, h.Err())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired, "two have the one permit: %v", other)
}
