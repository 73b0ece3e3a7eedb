package rmultilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// Redis is away for longer than the client's watchdog timeout, but not for as long as the lease
// that was asked for: the release goes on until that is over, as that of one lock does.
func TestAReleaseGoesOnForTheLeaseThatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := connect(t, p.URL(), redlatch.WithWatchdogTimeout(time.Second), redlatch.WithCommandTimeout(200*time.Millisecond))
	all := names(t, 3)
	one, err := rlock.New(c, all[2]).Lock(within(t), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	several, err := rmultilock.New(c, all[:2]...).Lock(within(t), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	p.Refuse(true)
	p.Reset()
	require.Error(t, one.Unlock())
	require.Error(t, several.Unlock())
	time.Sleep(3 * time.Second)
	p.Refuse(false)
	for _, name := range []string{all[2], all[0], all[1]} {
		require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, 5*time.Second, 10*time.Millisecond, name)
	}
}

// One of the locks was entered again with a longer lease than that of all, and the release of that hold
// has not arrived: the lock may last for that lease, and so does the release of all.
func TestAReleaseGoesOnForTheLeaseOfAnInnerHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := connect(t, p.URL(), redlatch.WithWatchdogTimeout(time.Second), redlatch.WithCommandTimeout(200*time.Millisecond))
	all := names(t, 2)
	several := take(t, rmultilock.New(c, all...))
	inner, err := rlock.New(c, all[1]).Lock(several.Context(within(t)), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	p.Refuse(true)
	p.Reset()
	_ = inner.Unlock() // which has not arrived
	require.Error(t, several.Unlock())
	time.Sleep(3 * time.Second)
	p.Refuse(false)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", all[1]) == int64(0) }, 5*time.Second, 10*time.Millisecond)
}
