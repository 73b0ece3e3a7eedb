package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// An inner hold has run on the server, but its reply is lost, and Redis is away for longer than the
// lease of the hold outside: the lock has the longer lease that was asked for, and the release goes on
// for as long.
func TestTheReleaseGoesOnForTheLeaseOfAReentryWithoutAReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := connect(t, p.URL(), redlatch.WithWatchdogTimeout(shortLease), redlatch.WithCommandTimeout(1500*time.Millisecond))
	l := rlock.New(c, redistest.Key(t))
	outer, err := l.Lock(t.Context())
	require.NoError(t, err)
	inner, err := l.Lock(outer.Context(t.Context()))
	require.NoError(t, err, "the server has the script now")
	require.NoError(t, inner.Unlock())
	p.Blackhole(redistest.ToClient)
	_, err = l.Lock(outer.Context(t.Context()), rlock.WithLease(10*time.Minute))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	p.Refuse(true)
	p.Reset()
	p.Heal()
	require.Error(t, outer.Unlock())
	time.Sleep(shortLease + 2*time.Second)
	p.Refuse(false)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", l.Name()) == int64(0) }, soon, 10*time.Millisecond)
}
