package rreadwritelock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// The first waiting reader in a process, its leader, owns the subscription.
func TestCanceledLeaderReplacedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		near := same(t, s, far)
		w := take(t, far.Write())
		ctx, cancel := context.WithCancel(t.Context())
		first := queued(ctx, near.Read())
		second := queued(t.Context(), near.Read())
		cancel()
		require.ErrorIs(t, (<-first).Err, context.Canceled)
		synctest.Wait()
		unlocked := time.Now()
		unlock(t, w)
		came := must(t, second, soon)
		require.Zero(t, time.Since(unlocked))
		unlock(t, came)
	})
}

type delayKey struct{}

// delayed delays the attempts of followers after their leader has been granted the lock, by the value
// of delayKey.
func delayed() redlatch.Option {
	return redlatch.WithObserver(redlatch.Observer{Woken: func(ctx context.Context, e redlatch.Woken) {
		if d, ok := ctx.Value(delayKey{}).(time.Duration); ok && e.By == "turn" {
			time.Sleep(d)
		}
	}})
}

// A writer in another process is faster than the follower, which becomes the leader and subscribes.
func TestRefusedFollowerSubscribesAsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		near := same(t, s, far, delayed())
		w := take(t, far.Write())
		ctx := context.WithValue(t.Context(), delayKey{}, 10*time.Millisecond)
		first, second, third := queued(ctx, near.Read()), queued(ctx, near.Read()), queued(ctx, near.Read())
		unlock(t, w)
		unlock(t, must(t, first, soon))
		var unlocked time.Time
		for range 2 {
			w = take(t, far.Write()) // before a follower tries
			time.Sleep(100 * time.Millisecond)
			unlocked = time.Now()
			unlock(t, w)
			select {
			case came := <-second:
				require.NoError(t, came.Err)
				unlock(t, came.Hold)
			case came := <-third:
				require.NoError(t, came.Err)
				unlock(t, came.Hold)
			case <-time.After(soon):
				require.FailNow(t, "no reader acquires the lock")
			}
		}
		require.Zero(t, time.Since(unlocked), "the message was received")
	})
}

// The leader is canceled while a writer in the process is waiting. Its follower is held back until the
// poll cap at most, since readers in other processes may hold the lock.
func TestReaderWithoutLeaderPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		near := same(t, s, far, delayed())
		w := take(t, far.Write())
		first := queued(t.Context(), near.Read())
		leads, cancel := context.WithCancel(context.WithValue(t.Context(), delayKey{}, 10*time.Millisecond))
		leader := queued(leads, near.Read())
		follower := queued(context.WithValue(t.Context(), delayKey{}, 20*time.Millisecond), near.Read())
		unlock(t, w)
		unlock(t, must(t, first, soon))
		w = take(t, far.Write(), rlock.WithLease(time.Hour)) // before the two try
		time.Sleep(100 * time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		writer := later(ctx, near.Write())
		time.Sleep(100 * time.Millisecond)
		cancel()
		require.ErrorIs(t, (<-leader).Err, context.Canceled)
		reads := enter(t, far.Read(), w)
		unlock(t, w) // a downgrade does not send a message
		unlock(t, must(t, follower, 11*time.Second), reads)
		stop()
		if w := <-writer; w.Err == nil {
			unlock(t, w.Hold)
		}
	})
}

// Two readers try at the same time. The leader is canceled while a later writer of the client waits,
// which does not hold back the other reader.
func TestRefusedReaderLeadsDespiteWaitingWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		tr, client := callers.Stalling(t, s)
		near := rreadwritelock.New(client, far.Name())
		unlock(t, take(t, near.Read()))
		w := take(t, far.Write())
		reads := enter(t, far.Read(), w)
		tr.Stall(true)
		first, giveUp := context.WithCancel(t.Context())
		leader := queued(first, near.Read())
		other := queued(t.Context(), near.Read())
		tr.Stall(false)
		synctest.Wait()
		writer := queued(t.Context(), near.Write())
		time.Sleep(400 * time.Millisecond) // the writer does not admit any further readers
		giveUp()
		require.ErrorIs(t, (<-leader).Err, redlatch.ErrNotAcquired)
		unlock(t, w)
		unlock(t, must(t, other, time.Second), reads)
		unlock(t, must(t, writer, soon))
		free(t, s, far)
	})
}

// WithoutWriterPreference, a waiting reader can always become the leader.
func TestReaderWithoutPreferenceLeadsDespiteWaitingWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := inMemory(t)
		near := rreadwritelock.New(clientOf(t, s), far.Name(), rreadwritelock.WithoutWriterPreference())
		w := take(t, far.Write())
		reads := enter(t, far.Read(), w)
		writer := queued(t.Context(), near.Write())
		first, giveUp := context.WithCancel(t.Context())
		leader := queued(first, near.Read())
		time.Sleep(50 * time.Millisecond)
		parked := queued(t.Context(), near.Read())
		giveUp()
		require.ErrorIs(t, (<-leader).Err, redlatch.ErrNotAcquired)
		unlock(t, w)
		unlock(t, take(t, near.Read()), must(t, parked, time.Second), reads)
		unlock(t, must(t, writer, soon))
		free(t, s, far)
	})
}

// Another process keeps the writer out, which must not keep readers out forever.
func TestWaitingWriterHoldsReadersBackForOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		far := take(t, same(t, s, rw).Read())
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		w := queued(ctx, rw.Write())
		time.Sleep(50 * time.Millisecond) // the writer does not admit any further readers
		refused(t, rw.Read())
		r := must(t, later(t.Context(), rw.Read()), soon)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		require.Less(t, time.Since(began), 3*time.Second)
		unlock(t, r)
		r1, r2 := later(t.Context(), rw.Read()), later(t.Context(), rw.Read())
		cancel()
		require.ErrorIs(t, (<-w).Err, redlatch.ErrNotAcquired)
		unlock(t, must(t, r1, soon), must(t, r2, soon), far)
		free(t, s, rw)
	})
}

func TestWaitingReadersEnterTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		for _, writer := range []*rlock.Lock{rw.Write(), same(t, s, rw).Write()} {
			w := take(t, writer)
			var came []<-chan acquired
			for range 20 {
				came = append(came, queued(t.Context(), rw.Read()))
			}
			unlocked := time.Now()
			unlock(t, w)
			var holds []*rlock.Hold
			for _, c := range came {
				holds = append(holds, must(t, c, time.Second))
			}
			require.Zero(t, time.Since(unlocked))
			unlock(t, holds...)
		}
		free(t, s, rw)
	})
}

func TestWaitingReadersEnterBeforeNextWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		// Before the script is loaded, later attempts can overtake a release.
		unlock(t, take(t, rw.Write()))
		first := take(t, rw.Write())
		for range 8 {
			next, one, two := queued(t.Context(), rw.Write()), queued(t.Context(), rw.Read()), queued(t.Context(), rw.Read())
			unlock(t, first)
			r1, r2 := must(t, one, soon), must(t, two, soon)
			synctest.Wait()
			require.Empty(t, next)
			unlock(t, r1, r2)
			first = must(t, next, soon)
		}
		unlock(t, first)
		free(t, s, rw)
	})
}

// The leader already knows that the lock is held.
func TestRefusedWriterDoesNotWakeAllWaitingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		var attempts atomic.Int64
		counting := redlatch.WithObserver(redlatch.Observer{Attempted: func(_ context.Context, e redlatch.Attempted) {
			if e.Kind == "read" {
				attempts.Add(1)
			}
		}})
		far := newLock(t, s)
		near := same(t, s, far, counting)
		w := take(t, far.Write())
		var waiting []<-chan acquired
		for range 20 {
			waiting = append(waiting, queued(t.Context(), near.Read()))
		}
		attempts.Store(0)
		const tries = 10
		for range tries {
			refused(t, near.Write())
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, attempts.Load(), int64(tries), "of the leader")
		unlock(t, w)
		for _, came := range waiting {
			unlock(t, must(t, came, soon))
		}
	})
}

// The forgotten hold keeps the writers' local turn until it detects the loss.
func TestForgottenHoldBlocksNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		former := take(t, rw.Write(), rlock.WithLease(time.Hour))
		s.Do(t, "DEL", rw.Name())
		for range 2 {
			for _, role := range []*rlock.Lock{rw.Read(), rw.Write()} {
				hold, err := role.TryLock(t.Context())
				require.NoError(t, err)
				unlock(t, hold)
			}
		}
		require.ErrorIs(t, former.Unlock(), redlatch.ErrLost)
	})
}

// The server stalls while a writer enters as a reader, until the writer unlocks.
func TestWriterUnlockedWhileReadingPassesTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		tr, client := callers.Stalling(t, s)
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithLease(time.Hour))
		tr.Stall(true)
		inner := queued(w.Context(t.Context()), rw.Read())
		time.Sleep(time.Second)
		require.ErrorIs(t, w.Unlock(), redlatch.ErrUncertain)
		require.Error(t, (<-inner).Err)
		tr.Stall(false)
		time.Sleep(30 * time.Second)
		require.Equal(t, int64(0), s.Do(t, "EXISTS", "job"))
		for range 3 {
			began := time.Now()
			unlock(t, take(t, rw.Write()))
			require.Zero(t, time.Since(began))
		}
	})
}

// The server stalls until the release of the expired hold is late.
func TestLateReaderReleaseKeepsOtherHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		tr, client := callers.Stalling(t, s)
		rw := rreadwritelock.New(client, "job")
		owner := rlock.WithOwner(codec.NewOwner(uuid.New(), 7))
		short := take(t, rw.Read(), owner, rlock.WithLease(time.Second))
		long := take(t, rw.Read(), owner, rlock.WithLease(25*time.Second))
		time.Sleep(700 * time.Millisecond)
		tr.Stall(true)
		lost(t, short, time.Second)
		time.Sleep(700 * time.Millisecond)
		tr.Stall(false)
		time.Sleep(time.Second)
		require.NoError(t, long.Err())
		refused(t, same(t, s, rw).Write())
		require.Greater(t, millis(t, s, rw.Name()), int64(15_000))
		unlock(t, long)
		free(t, s, rw)
	})
}
