package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The network holds a command back until its connection has been replaced. On the embedded server,
// clients cannot kill the old connection, which some users may not do either.

// settled is logged when an uncertain call has been resolved.
const settled = "unresolved call resolved"

func wakeUps(t *testing.T, s redistest.Target, key string) func() int {
	t.Helper()
	conn := redis.PubSubConn{Conn: s.Dial(t)}
	require.NoError(t, conn.Subscribe(codec.LockChannel(key)))
	_, isAck := conn.Receive().(redis.Subscription)
	require.True(t, isAck)
	n := 0
	return func() int {
		t.Helper()
		// All messages before this one have arrived.
		s.Do(t, "PUBLISH", codec.LockChannel(key), "mark")
		for {
			m, ok := conn.ReceiveWithTimeout(soon).(redis.Message)
			require.True(t, ok)
			if string(m.Data) == "mark" {
				return n
			}
			require.Equal(t, protocol.MessageUnlock, string(m.Data))
			n++
		}
	}
}

func shortReplyLimit() redlatch.Option { return redlatch.WithCommandTimeout(2 * time.Second) }

func TestU5KilledConnectionDropsUncertainAcquire(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	p.KeepHalfDead(true)
	logged, log := newJournal()
	client := connect(t, p.URL(), log, shortReplyLimit())
	loadScripts(t, connect(t, s.URL()))
	before, key := grants(t, s), redistest.Key(t)

	held := p.HoldMatching(redistest.ToServer, key)
	w := await(t.Context(), rlock.New(client, key))
	awaitClosed(t, held.Seen(), soon, "the acquire")
	p.Reset()
	require.ErrorIs(t, w.failed(t, soon), redlatch.ErrUncertain)
	until(t, soon, "a resolution", func() bool { return logged.count(settled, key) == 1 })
	require.Positive(t, s.CommandStats(t)["client|kill"])

	held.Release()
	until(t, soon, "delivery", func() bool { return p.Holding(redistest.ToServer) == 0 })
	loadScripts(t, connect(t, p.URL()))
	require.False(t, locked(t, s, key))
	require.Equal(t, before+1, grants(t, s), "the in-doubt call ran")
}

// The server has run the release, and its reply is lost with the connection.
func TestU32KilledConnectionReleasesOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, key := redistest.NewProxy(t, s.Addr()), redistest.Key(t)
			l, other := make(connect(t, p.URL(), redlatch.WithCommandTimeout(soon)), key), make(connect(t, s.URL()), key)
			require.NoError(t, take(t, l).Unlock()) // loads the scripts
			hold := take(t, l)
			p.Blackhole(redistest.ToClient)
			outcome := hold.UnlockAsync()
			until(t, soon, "the reply", func() bool { return p.Holding(redistest.ToClient) > 0 && !locked(t, s, key) })
			next := take(t, other)
			p.Reset()
			p.Heal()
			require.NoError(t, <-outcome)
			require.EqualValues(t, 1, countOf(t, other, next), "the repeated release has ended the next hold")
			require.NoError(t, next.Unlock())
			require.False(t, locked(t, s, key))
		})
	}
}

func TestU5UncertainAcquireReleasedWithoutKill(t *testing.T) {
	t.Parallel()
	const reset, left, limit = "reset", "reset after the caller left", "reply limit"
	for _, how := range []string{reset, left, limit} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				logged, log := newJournal()
				w, client := wired(t, 0, log, shortReplyLimit())
				loadScripts(t, client)
				messages := wakeUps(t, w.srv, "job")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				held := w.holdCommand("job")
				call := await(ctx, rlock.New(client, "job"))
				synctest.Wait()
				if how == left {
					cancel()
					require.ErrorIs(t, call.failed(t, time.Millisecond), context.Canceled)
				}
				if how != limit {
					w.reset()
				}
				require.ErrorIs(t, call.failed(t, soon), redlatch.ErrUncertain)
				time.Sleep(5 * time.Second) // several queries
				require.Zero(t, logged.count(settled, "job"))
				require.Zero(t, messages())

				held.release(t)
				require.True(t, locked(t, w.srv, "job"))
				time.Sleep(soon)
				require.Equal(t, 1, logged.count(settled, "job", "was_held=true"))
				require.False(t, locked(t, w.srv, "job"))
				require.Equal(t, 1, messages(), "waiters are notified")
			})
		})
	}
}

// The next attempt has another owner, and only one is granted.
func TestU5UncertainAcquireDoesNotBlockItsCaller(t *testing.T) {
	for name, inDoubtFirst := range map[string]bool{"the uncertain call is first": true, "the caller is first": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lan, client := wired(t, 0, shortReplyLimit(), noPoll())
				loadScripts(t, client)
				holdByHand(t, lan.srv, "job", forever)
				w := await(t.Context(), rlock.New(client, "job"))
				synctest.Wait()
				held := lan.holdCommand("EVALSHA")
				lan.srv.Do(t, "PUBLISH", codec.LockChannel("job"), protocol.MessageUnlock) // this is a reason to try
				synctest.Wait()
				lan.reset()
				time.Sleep(time.Second) // it tries again
				lan.srv.Do(t, "DEL", "job")
				if !inDoubtFirst {
					freeByHand(t, lan.srv, "job")
					w.ended(t, time.Second)
				}
				held.release(t)
				hold := w.acquired(t, soon)
				require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, lan.srv, "job"))
				time.Sleep(soon)
				require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, lan.srv, "job"))
				require.NoError(t, hold.Unlock())
				require.False(t, locked(t, lan.srv, "job"))
			})
		})
	}
}

// The server is frozen for longer than the lease of an acquire, which it runs afterwards.
func TestU5AcquireAfterLongFreezeIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, redlatch.WithWatchdogTimeout(shortLease), redlatch.WithCommandTimeout(time.Second))
		loadScripts(t, client)
		held := w.holdCommand("job")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := rlock.New(client, "job").Lock(ctx, rlock.WithLease(shortLease))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.hole.Store(true)
		time.Sleep(shortLease + 3*time.Second) // longer than a query that starts within the lease
		w.heal()
		held.release(t)
		require.True(t, locked(t, w.srv, "job"))
		time.Sleep(3 * time.Second)
		require.False(t, locked(t, w.srv, "job"))
	})
}

func TestU10UncertainReleaseKeepsNextHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		loadScripts(t, client)
		hold := take(t, rlock.New(client, "job"))
		messages := wakeUps(t, w.srv, "job")
		held := w.holdCommand("EVALSHA")
		outcome := hold.UnlockAsync()
		synctest.Wait()
		w.reset()
		require.NoError(t, <-outcome)
		require.Equal(t, 1, messages())

		next := take(t, rlock.New(client, "job"))
		held.release(t)
		require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, w.srv, "job"))
		require.Equal(t, 1, messages())
		require.NoError(t, next.Unlock())
		require.Equal(t, 2, messages())
	})
}

func TestU4LateReentryDoesNotAcquireFreeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, log := newJournal()
		w, client := wired(t, 0, log, redlatch.WithCommandTimeout(time.Second))
		l := rlock.New(client, "job")
		outer := take(t, l)
		require.NoError(t, again(t, l, outer).Unlock())
		held := w.holdCommand(outer.Owner().String())
		_, err := l.TryLock(outer.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		w.reset()
		require.NoError(t, outer.Unlock())
		require.False(t, locked(t, w.srv, "job"))
		time.Sleep(soon)
		require.Equal(t, 1, logged.count("unresolved call left to Unlock", "job"))
		held.release(t)
		require.False(t, locked(t, w.srv, "job"))
		other := take(t, l)
		require.Equal(t, map[string]string{other.Owner().String(): "1"}, owners(t, w.srv, "job"))
		require.NoError(t, other.Unlock())
		require.False(t, locked(t, w.srv, "job"))
	})
}

func TestU4LateReleaseKeepsCurrentHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, redlatch.WithCommandTimeout(time.Second))
		l := rlock.New(client, "job")
		outer := take(t, l)
		require.NoError(t, again(t, l, outer).Unlock())
		inner := again(t, l, outer)
		held := w.holdCommand(outer.Owner().String())
		outcome := inner.UnlockAsync()
		synctest.Wait()
		w.reset()
		require.NoError(t, <-outcome)
		third := again(t, l, outer)
		held.release(t)
		require.NoError(t, third.Unlock())
		require.NoError(t, outer.Err())
		require.True(t, locked(t, w.srv, "job"))
		require.NoError(t, outer.Unlock())
		require.False(t, locked(t, w.srv, "job"))
	})
}

// The release may arrive when another caller holds the lock with this owner.
func TestHandOverRejectsPendingRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		hold := take(t, l)
		require.NoError(t, again(t, l, hold).Unlock())
		inner := again(t, l, hold)
		held := w.holdCommand("job")
		outcome := inner.UnlockAsync()
		synctest.Wait()
		w.reset()
		require.NoError(t, <-outcome)
		for range 3 {
			owner, err := hold.HandOver()
			require.ErrorIs(t, err, redlatch.ErrUncertain)
			require.Zero(t, owner)
		}
		require.NoError(t, hold.Err())
		held.release(t)
		require.NoError(t, hold.Unlock())
	})
}

// The outer hold is unlocked during the re-entry.
func TestLateReentryPassesTurnToNextWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		hold := take(t, l)
		require.NoError(t, again(t, l, hold).Unlock())
		ctx := context.WithoutCancel(hold.Context(t.Context()))
		w.srv.Do(t, "DEL", "job")
		held := w.holdCommand("job")
		reentry := await(ctx, l)
		synctest.Wait()
		unlock := inBackground(func() (*rlock.Hold, error) { return nil, hold.Unlock() })
		synctest.Wait()
		held.release(t)
		require.ErrorIs(t, reentry.failed(t, soon), redlatch.ErrLost)
		unlock.ended(t, soon)
		require.NoError(t, unlock.err, "the re-entry releases the lock")
		require.NoError(t, await(t.Context(), l).acquired(t, soon).Unlock())
	})
}
