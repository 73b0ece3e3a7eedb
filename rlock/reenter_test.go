package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// countOf returns the server's count of a hold's owner.
func countOf(t testing.TB, l *rlock.Lock, h *rlock.Hold) int64 {
	t.Helper()
	n, err := l.HoldCount(context.WithoutCancel(t.Context()), h.Owner())
	require.NoError(t, err)
	return n
}

// again re-enters the lock by the proof of a hold.
func again(t testing.TB, l *rlock.Lock, h *rlock.Hold, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	inner, err := l.TryLock(h.Context(context.Background()), opts...)
	require.NoError(t, err)
	return inner
}

func TestProofIsForThatLockOfThatClientOnly(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	ctx := outer.Context(t.Context())
	other := rlock.New(client, redistest.Key(t))
	hold := take(t, other)
	_, err := other.TryLock(ctx)
	checkHeld(t, err)
	_, err = rlock.New(connect(t, srv.URL()), l.Name()).TryLock(ctx)
	checkHeld(t, err)
	inner, err := rlock.New(client, l.Name()).TryLock(ctx) // another handle for the same lock
	require.NoError(t, err)
	require.NoError(t, inner.Unlock())
	require.NoError(t, outer.Unlock())
	require.NoError(t, hold.Unlock())
}

func TestProofOfAnInnerHoldThatWasUnlockedLeavesTheOuterOne(t *testing.T) {
	t.Parallel()
	_, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	inner, err := l.TryLock(outer.Context(t.Context()))
	require.NoError(t, err)
	ctx := context.WithoutCancel(inner.Context(outer.Context(t.Context())))
	require.NoError(t, inner.Unlock())
	third, err := l.TryLock(ctx)
	require.NoError(t, err)
	require.Equal(t, outer.Owner(), third.Owner())
	require.NoError(t, third.Unlock())
	require.NoError(t, outer.Unlock())
}

// The server has forgotten the lock, and the holder has not noticed yet.
func TestReentryRefusesWhatTheServerForgotAndEndsTheOuterHold(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL())
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	ctx := outer.Context(t.Context())
	srv.Do(t, "DEL", l.Name())
	before := grants(t, srv)
	_, err := l.TryLock(ctx)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorIs(t, outer.Err(), redlatch.ErrLost)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.False(t, locked(t, srv, l.Name()), "a re-entry never takes a free lock")
	require.Equal(t, before, grants(t, srv), "not even for a moment")

	foreign := take(t, rlock.New(connect(t, srv.URL()), l.Name()))
	require.EqualValues(t, 1, countOf(t, l, foreign))
	require.NoError(t, foreign.Unlock())
}

// U4: the reply to a re-entry is lost. It is not sent again blindly, the count
// comes right, and one unlock of the outer hold frees the lock.
func TestU4LostReplyOfAReentryLeavesNoExtraCount(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s, redlatch.WithCommandTimeout(time.Second))
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	require.NoError(t, again(t, l, outer).Unlock()) // the script is known
	p.Blackhole(redistest.ToClient)
	_, err := l.TryLock(outer.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	p.Reset()
	p.Heal()
	until(t, soon, "the count comes right", func() bool { return owners(t, s, l.Name())[outer.Owner().String()] == "1" })
	inner := waitInner(l, outer).acquired(t, soon) // the client may find out later than the test
	require.Equal(t, "2", owners(t, s, l.Name())[outer.Owner().String()])
	require.NoError(t, inner.Unlock())
	require.NoError(t, outer.Unlock())
	require.False(t, locked(t, s, l.Name()))
}

// withoutKill returns a proxy in front of a server, and a client behind it that may not kill
// connections, so that what the network holds back runs late.
func withoutKill(t *testing.T, opts ...redlatch.Option) (*redistest.Server, *redistest.Proxy, *redlatch.Client) {
	t.Helper()
	s, p := delayingNet(t)
	s.Do(t, "ACL", "SETUSER", "default", "-client|kill", "-client|id")
	client := connect(t, p.URL(), opts...)
	loadScripts(t, client)
	return s, p, client
}

// deliver releases a script that was held back, and returns when the server has run it.
func deliver(t *testing.T, s *redistest.Server, held *redistest.Held) {
	t.Helper()
	ran := s.CommandStats(t)["evalsha"]
	held.Release()
	until(t, soon, "the late script", func() bool { return s.CommandStats(t)["evalsha"] > ran })
}

// The network holds back exactly the re-entry, and delivers it when the hold is
// long over.
func TestU4LateReentryNeverTakesAFreeLock(t *testing.T) {
	t.Parallel()
	logged, log := newJournal()
	s, p, client := withoutKill(t, log, redlatch.WithCommandTimeout(time.Second))
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	require.NoError(t, again(t, l, outer).Unlock())
	held := p.HoldMatching(redistest.ToServer, outer.Owner().String())
	_, err := l.TryLock(outer.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	awaitClosed(t, held.Seen(), soon, "the re-entry")
	p.Reset()
	require.NoError(t, outer.Unlock())
	require.False(t, locked(t, s, l.Name()))
	logged.await(t, 1, "open outcome left to the caller that frees the lock", l.Name())
	deliver(t, s, held)
	require.False(t, locked(t, s, l.Name()))
	other := take(t, l)
	require.Equal(t, map[string]string{other.Owner().String(): "1"}, owners(t, s, l.Name()))
	require.NoError(t, other.Unlock())
	require.False(t, locked(t, s, l.Name()))
}

// The network holds back exactly the release of an inner hold, and delivers it
// when there is another inner hold.
func TestU4LateReleaseNeverFreesAHoldThatIsHeld(t *testing.T) {
	t.Parallel()
	s, p, client := withoutKill(t, redlatch.WithCommandTimeout(time.Second))
	l := rlock.New(client, redistest.Key(t))
	outer := take(t, l)
	require.NoError(t, again(t, l, outer).Unlock())
	inner := again(t, l, outer)
	held := p.HoldMatching(redistest.ToServer, outer.Owner().String())
	w := inBackground(func() (*rlock.Hold, error) { return nil, inner.Unlock() })
	awaitClosed(t, held.Seen(), soon, "the release")
	p.Reset()
	w.ended(t, soon)
	require.NoError(t, w.err)
	third := again(t, l, outer)
	deliver(t, s, held)
	require.NoError(t, third.Unlock())
	require.NoError(t, outer.Err())
	require.True(t, locked(t, s, l.Name()))
	require.NoError(t, outer.Unlock())
	require.False(t, locked(t, s, l.Name()))
}
