package rreadwritelock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// The new owner would write concurrently with the reader.
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
			case <-time.After(100 * time.Millisecond):
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

// The read must be a new acquisition, which waits for the writer.
func TestAbandonedWriterDoesNotAdmitReader(t *testing.T) {
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
			time.Sleep(50 * time.Millisecond)
			held.Release()
			require.NoError(t, <-left)
			require.ErrorIs(t, (<-read).Err, redlatch.ErrNotAcquired)
			require.NoError(t, same(t, s, rw).Write().UnlockAs(within(t), w.Owner()))
			free(t, s, rw)
		})
	}
}

// The read is a downgrade or a new acquisition.
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
