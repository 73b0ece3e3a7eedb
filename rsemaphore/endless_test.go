package rsemaphore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// Java can give a permit a lease of more years than a time.Duration has, such as that of
// acquire(365_000, TimeUnit.DAYS).
func TestAWaiterForAPermitOfAThousandYearsDoesNotAskWithoutAPause(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	var asked atomic.Int64
	client := connect(t, s.URL(), noPoll(), redlatch.WithObserver(redlatch.Observer{
		Attempted: func(context.Context, redlatch.Attempted) { asked.Add(1) },
	}))
	sem := rsemaphore.NewExpirable(client, redistest.Key(t))
	ends := time.Now().UnixMilli() + 365_000*24*time.Hour.Milliseconds()
	s.Do(t, "SET", sem.Name(), 0)
	s.Do(t, "ZADD", codec.PermitsKey(sem.Name()), ends, "0123456789abcdef")
	_, err := sem.Acquire(within(t), 1, rsemaphore.WithWait(300*time.Millisecond))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.Less(t, asked.Load(), int64(5))
	in, err := sem.Inspect(within(t))
	require.NoError(t, err)
	require.Greater(t, in.Permits[0].Left, 250*365*24*time.Hour)
}
