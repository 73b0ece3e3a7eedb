package rreadwritelock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// A writer is not handed over, nor left to its lease, while its context is about to read: the
// new owner would write beside the reader.
func TestAWriterIsNotHandedOverWhileItBeginsToRead(t *testing.T) {
	t.Parallel()
	for what, leave := range map[string]func(*rlock.Hold) error{
		"hand over":  func(w *rlock.Hold) error { _, err := w.HandOver(); return err },
		"let expire": (*rlock.Hold).LetExpire,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, p, rw := behind(t)
			w := take(t, rw.Write())
			held := p.HoldMatching(redistest.ToServer, rw.Name())
			read := later(w.Context(within(t)), rw.Read())
			<-held.Seen()
			left := make(chan error, 1)
			go func() { left <- leave(w) }()
			select {
			case err := <-left:
				require.ErrorIs(t, err, redlatch.ErrReentered)
			case <-time.After(100 * time.Millisecond): // it waits for the read
				held.Release()
				require.ErrorIs(t, <-left, redlatch.ErrReentered)
			}
			r := must(t, read, soon)
			require.NoError(t, w.Err())
			unlock(t, r, w)
			free(t, s, rw)
		})
	}
}

// A writer that was left is no way in for its context: the read is an acquisition like any
// other, and finds that the owner writes.
func TestAWriterThatIsLeftIsNoWayIntoARead(t *testing.T) {
	t.Parallel()
	for what, hasRead := range map[string]bool{"it has read": true, "it has never read": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, p, rw := behind(t)
			w := take(t, rw.Write())
			if hasRead {
				unlock(t, enter(t, rw.Read(), w))
			}
			held := p.HoldMatching(redistest.ToServer, rw.Name())
			left := make(chan error, 1)
			go func() { _, err := w.HandOver(); left <- err }()
			<-held.Seen()
			read := later(context.WithoutCancel(w.Context(within(t))), rw.Read(), rlock.WithWait(500*time.Millisecond))
			time.Sleep(50 * time.Millisecond) // in which it would have entered
			held.Release()
			require.NoError(t, <-left)
			require.ErrorIs(t, (<-read).Err, redlatch.ErrNotAcquired)
			require.NoError(t, same(t, s, rw).Write().UnlockAs(within(t), w.Owner()))
			free(t, s, rw)
		})
	}
}

// A read that its writer's Unlock crosses is what the writer goes on as, or an acquisition
// like any other; it is never lost.
func TestAReadThatCrossesTheWritersUnlockIsNotLost(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	for i := range testlevel.Rounds(150, 600) {
		w := take(t, rw.Write())
		read := later(context.WithoutCancel(w.Context(within(t))), rw.Read())
		time.Sleep(time.Duration(i%20) * 5 * time.Microsecond) // the moment of the crossing varies
		unlock(t, w)
		r := must(t, read, soon)
		require.NoError(t, r.Err())
		unlock(t, r)
	}
	free(t, s, rw)
}

// A writer that has reached its maximum leaves its role when its lease is over, though its
// reads keep the lock.
func TestAWriterAtItsMaximumLeavesItsReads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rw := newLock(t, s)
	w := take(t, rw.Write(), rlock.WithWatchdog(3*time.Second), rlock.WithMaxHold(time.Second))
	r := enter(t, rw.Read(), w)
	beside := must(t, later(within(t), same(t, s, rw).Read()), soon)
	require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
	require.NoError(t, r.Err())
	refused(t, same(t, s, rw).Write())
	require.ErrorIs(t, w.Unlock(), redlatch.ErrMaxHold)
	unlock(t, beside, r)
	free(t, s, rw)
}

// With a watchdog timeout that is shorter than the loss margin of a long lease, readers keep
// such a lease all the same.
func TestAShortWatchdogTimeoutKeepsReadersWithLongLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client := fakeClient(t, srv, redlatch.WithWatchdogTimeout(time.Second))
		rw := rreadwritelock.New(client, "job")
		fixed := take(t, rw.Read(), rlock.WithLease(20*time.Second))
		renewed := take(t, rw.Read(), rlock.WithWatchdog(20*time.Second))
		time.Sleep(3 * time.Second) // three times as long as a confirmation counts
		require.NoError(t, fixed.Err())
		require.NoError(t, renewed.Err())
		unlock(t, fixed, renewed)
		require.Zero(t, srv.Do(t, "DBSIZE"))
	})
}
