package rlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// travels encodes and decodes an owner, as if it were sent in a job's payload.
func travels(t testing.TB, o codec.Owner) codec.Owner {
	t.Helper()
	back, err := codec.ParseOwner(o.String())
	require.NoError(t, err)
	return back
}

func newOwner() codec.Owner { return codec.NewOwner(uuid.New(), 57) }

func TestResumeWithoutHandOverEndsOldHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, a := inBubble(t)
		hold := take(t, rlock.New(a, "lock"))
		resumed, err := rlock.New(fakeClient(t, srv), "lock").Resume(t.Context(), hold.Owner())
		require.NoError(t, err)
		require.NoError(t, resumed.Unlock())
		awaitLoss(t, hold, 10*time.Second+time.Millisecond)
	})
}

func TestUnlockAsContinuesInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l, owner := rlock.New(client, "job"), newOwner()
		require.ErrorIs(t, l.UnlockAs(t.Context(), owner), redlatch.ErrNotHeld) // the server knows the script
		take(t, l, rlock.WithOwner(owner))
		speak := w.holdReplies()
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- l.UnlockAs(ctx, owner) }()
		synctest.Wait()
		require.False(t, locked(t, w.srv, "job"))
		cancel()
		err := <-result
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.ErrorIs(t, err, context.Canceled)
		speak()
	})
}

func TestUncertainAcquireWithGivenOwnerIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		loadScripts(t, client)
		l, owner := rlock.New(client, "job"), newOwner()
		srv.LoseReplies(1)
		_, err := l.Lock(t.Context(), rlock.WithOwner(owner))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(soon)
		require.Equal(t, map[string]string{owner.String(): "1"}, owners(t, srv, "job"))
		resumed, err := l.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.NoError(t, resumed.Unlock())
		require.False(t, locked(t, srv, "job"))
	})
}

// The count may belong to another caller with the same owner.
func TestUncertainReentryOfResumedHoldIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		loadScripts(t, client)
		l := rlock.New(client, "job")
		owner, err := take(t, l).HandOver()
		require.NoError(t, err)
		resumed, err := l.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.NoError(t, again(t, l, resumed).Unlock())
		synctest.Wait() // for calls that the client sends in the background
		srv.LoseReplies(1)
		_, err = l.Lock(resumed.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(soon)
		owner, err = resumed.HandOver()
		require.NoError(t, err)
		require.Equal(t, map[string]string{owner.String(): "2"}, owners(t, srv, "job"))
		last, err := l.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.NoError(t, last.Unlock())
		require.True(t, locked(t, srv, "job"))
		time.Sleep(30*time.Second + time.Millisecond)
		require.False(t, locked(t, srv, "job"), "the lease has ended")
	})
}

func TestHandOverKeepsOtherHoldsOfSharedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l, owner := rlock.New(client, "job"), newOwner()
		hold := take(t, l, rlock.WithOwner(owner))
		other := take(t, rlock.New(fakeClient(t, srv), "job"), rlock.WithOwner(owner))
		require.NoError(t, again(t, l, hold).Unlock())
		_, err := hold.HandOver()
		require.NoError(t, err)
		require.Equal(t, map[string]string{owner.String(): "2"}, owners(t, srv, "job"))
		require.NoError(t, other.Unlock())
		require.NoError(t, l.UnlockAs(t.Context(), owner))
		require.False(t, locked(t, srv, "job"))
	})
}

// The release is repeated with the same latch.
func TestSharedReleaseWithLostReplyCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l, owner := rlock.New(client, "job"), newOwner()
		require.NoError(t, take(t, l, rlock.WithOwner(newOwner())).Unlock())
		hold := take(t, l, rlock.WithOwner(owner))
		take(t, l, rlock.WithOwner(owner))
		speak := w.holdReplies()
		outcome := hold.UnlockAsync()
		synctest.Wait()
		latches := keysLike(t, w.srv, "redisson_unlock_latch:{job}:*")
		require.Len(t, latches, 1)
		require.InDelta(t, 14, ttl(t, w.srv, latches[0]).Seconds(), 2, "Redisson's minimum")
		w.reset()
		speak()
		require.NoError(t, <-outcome)
		require.Equal(t, map[string]string{owner.String(): "1"}, owners(t, w.srv, "job"))
		require.NoError(t, l.UnlockAs(t.Context(), owner))
	})
}

func keysLike(t testing.TB, s redistest.Target, pattern string) []string {
	t.Helper()
	reply, err := redis.Strings(s.Do(t, "KEYS", pattern), nil)
	require.NoError(t, err)
	return reply
}

// ofOneOwner returns a lock on a server with slow replies, and an owner for it.
func ofOneOwner(t *testing.T, srv *redistest.MiniServer) (*rlock.Lock, codec.Owner) {
	t.Helper()
	tr := &faketransport.Distant{Transport: redigoTransport(srv)}
	t.Cleanup(tr.Wait)
	return rlock.New(over(t, tr), "job"), codec.NewOwner(uuid.New(), 1)
}

// requireKept checks that a hold keeps its lock for a minute.
func requireKept(t *testing.T, hold *rlock.Hold, other *redlatch.Client) {
	t.Helper()
	time.Sleep(time.Minute)
	require.NoError(t, hold.Err())
	_, err := rlock.New(other, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold reports that it has the lock")
}

// The shorter lease reaches the server last.
func TestConcurrentCallersOfOwnerKeepLongestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		long := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond)
		short := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
		hold := long.acquired(t, soon)
		short.acquired(t, soon)
		require.Greater(t, srv.Do(t, "PTTL", "job"), hold.Remaining().Milliseconds(), "the hold's assumed lease")
	})
}

// The shorter lease expires before its reply arrives.
func TestExpiredLeaseKeepsOtherHoldOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		long := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond)
		short := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(30*time.Millisecond))
		hold := long.acquired(t, soon)
		short.ended(t, soon)
		requireKept(t, hold, other)
	})
}

// firstRelease replaces the first release of a shared owner with a call to the function instead.
type firstRelease struct {
	transport.Transport

	once    sync.Once
	instead func(tr transport.Transport, call *transport.Call, done transport.Done)
}

func (f *firstRelease) Start(call *transport.Call, done transport.Done) {
	first := false
	if call.Name() == "release_shared" {
		f.once.Do(func() { first = true })
	}
	if first {
		f.instead(f.Transport, call, done)
		return
	}
	f.Transport.Start(call, done)
}

func TestReleaseForOwnerKeepsOtherLeases(t *testing.T) {
	acquires := func(t *testing.T, l *rlock.Lock, owner codec.Owner) *waiter {
		t.Helper()
		return await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
	}
	for name, c := range map[string]struct {
		// release releases the lock before the next caller enters. If it is nil, the lock is released
		// afterwards.
		release func(tr transport.Transport, call *transport.Call, done transport.Done)
		enter   func(t *testing.T, l *rlock.Lock, owner codec.Owner) *waiter
	}{
		"the next acquires": {nil, acquires},
		"the next resumes": {nil, func(t *testing.T, l *rlock.Lock, owner codec.Owner) *waiter {
			t.Helper()
			return inBackground(func() (*rlock.Hold, error) { return l.Resume(t.Context(), owner, rlock.WithLease(time.Hour)) })
		}},
		"the release is retried": {func(_ transport.Transport, call *transport.Call, done transport.Done) {
			call.Claim(0)
			done(nil, transport.ErrUncertain)
		}, acquires},
		"the release is overtaken": {func(tr transport.Transport, call *transport.Call, done transport.Done) {
			time.AfterFunc(10*time.Millisecond, func() { tr.Start(call, done) })
		}, acquires},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, other := inBubble(t)
				l, owner := ofOneOwner(t, srv)
				if c.release != nil {
					l = rlock.New(over(t, &firstRelease{Transport: redigoTransport(srv), instead: c.release}), "job")
				}
				first := await(t.Context(), l, rlock.WithOwner(owner)).acquired(t, soon)
				if name == "the next resumes" {
					srv.Do(t, "HINCRBY", "job", owner.String(), 1) // another process uses the owner
				}
				unlock := func() *waiter { return inBackground(func() (*rlock.Hold, error) { return nil, first.Unlock() }) }
				var next, left *waiter
				if c.release != nil {
					left = unlock()
					synctest.Wait()
					next = c.enter(t, l, owner)
				} else {
					next = c.enter(t, l, owner)
					synctest.Wait()
					left = unlock()
				}
				hold := next.acquired(t, soon)
				left.ended(t, soon)
				require.NoError(t, left.err)
				requireKept(t, hold, other)
			})
		})
	}
}
