package rsemaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestASemaphoreIsInspected(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := rsemaphore.NewExpirable(connect(t, s.URL()), redistest.Key(t))
	in, err := sem.Inspect(within(t))
	require.NoError(t, err)
	require.Equal(t, &rsemaphore.Inspection{}, in)
	require.NoError(t, sem.SetPermits(within(t), 5))
	short, long := take(t, sem, 1, rsemaphore.WithLease(time.Minute)), take(t, sem, 1, rsemaphore.WithLease(time.Hour))
	s.Do(t, "ZADD", codec.PermitsKey(sem.Name()), codec.PermitForever, "0123456789abcdef", 1, "fedcba9876543210")
	in, err = sem.Inspect(within(t))
	require.NoError(t, err)
	require.True(t, in.Exists)
	require.Equal(t, 3, in.Available)
	require.Equal(t, 4, in.Taken)
	require.Equal(t, redlatch.NoTTL, in.TTL)
	require.Len(t, in.Permits, 4)
	require.Equal(t, rsemaphore.Permit{ID: "66656463626139383736353433323130"}, in.Permits[0], "it is over")
	require.Equal(t, short.ID(), in.Permits[1].ID)
	require.InDelta(t, time.Minute.Seconds(), in.Permits[1].Left.Seconds(), 15)
	require.Equal(t, long.ID(), in.Permits[2].ID)
	require.Equal(t, rsemaphore.Permit{ID: "30313233343536373839616263646566", Left: redlatch.NoTTL}, in.Permits[3])
	release(t, short, long)
	s.Do(t, "SET", sem.Name(), "seven")
	_, err = sem.Inspect(within(t))
	require.ErrorIs(t, err, redlatch.ErrWrongType)
}
