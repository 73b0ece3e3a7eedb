package rreadwritelock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Redis is away for longer than the lease of the hold outside, which was given up, but not for as
// long as that of the hold inside: the release of that one goes on until its lease is over.
func TestTheReleaseOfAnInnerHoldGoesOnForItsOwnLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for what, roles := range map[string]func(c *redlatch.Client, name string) (outer, inner *rlock.Lock){
		"the same role": func(c *redlatch.Client, name string) (outer, inner *rlock.Lock) {
			l := rreadwritelock.New(c, name)
			return l.Write(), l.Write()
		},
		"downgraded": func(c *redlatch.Client, name string) (outer, inner *rlock.Lock) {
			l := rreadwritelock.New(c, name)
			return l.Write(), l.Read()
		},
		"plain": func(c *redlatch.Client, name string) (outer, inner *rlock.Lock) {
			l := rlock.New(c, name)
			return l, l
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := redistest.NewProxy(t, s.Addr())
			c := connect(t, p.URL(), redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
			name := redistest.Key(t)
			outside, inside := roles(c, name)
			outer, err := outside.Lock(within(t))
			require.NoError(t, err)
			inner, err := inside.Lock(outer.Context(within(t)), rlock.WithLease(10*time.Minute))
			require.NoError(t, err)
			require.NoError(t, outer.Unlock())
			p.Refuse(true)
			p.Reset()
			require.Error(t, inner.Unlock())
			time.Sleep(5 * time.Second)
			p.Refuse(false)
			require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, soon, 10*time.Millisecond)
		})
	}
}

// A writer whose read has a longer lease than itself: the lock lasts as long as that on the server,
// and the writer's part of it is given up as late as the read's.
func TestAWriterIsGivenUpAlsoWhenItsReadLastsLonger(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := connect(t, p.URL(), redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
	l := rreadwritelock.New(c, redistest.Key(t))
	w := take(t, l.Write())
	r := enter(t, l.Read(), w, rlock.WithLease(10*time.Minute))
	p.Refuse(true)
	p.Reset()
	time.Sleep(7 * time.Second)
	require.ErrorIs(t, w.Err(), redlatch.ErrLost)
	require.ErrorIs(t, r.Err(), redlatch.ErrLost)
	p.Refuse(false)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", l.Name()) == int64(0) }, soon, 10*time.Millisecond)
}
