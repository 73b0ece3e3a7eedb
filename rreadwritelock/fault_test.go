package rreadwritelock_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// stallable returns a lock on a transport that can stall. The server knows its scripts.
func stallable(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *faketransport.Stalling, *rreadwritelock.Lock) {
	t.Helper()
	s := redistest.Mini(t, embedded.WithInProcess())
	tr, client := callers.Stalling(t, s, opts...)
	rw := rreadwritelock.New(client, "job")
	w := take(t, rw.Write())
	r := enter(t, rw.Read(), w)
	unlock(t, enter(t, rw.Read(), r), r, w)
	unlock(t, take(t, rw.Read()))
	synctest.Wait() // only the next reply can be lost
	return s, tr, rw
}

func TestReadWithLostReplyIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, rw := stallable(t)
		s.LoseReplies(1)
		_, err := rw.Read().TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		free(t, s, rw)
		unlock(t, take(t, rw.Write()))
	})
}

// The writer's own hold does not change. Without a fence, an uncertain re-entry delays the next one for the
// length of a lease.
func TestWritersReadsRecoverAfterLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, rw := stallable(t, redlatch.WithWatchdogTimeout(soon/3))
		w := take(t, rw.Write())
		reads := func() any { return s.Do(t, "HGET", "job", w.Owner().String()) }

		s.LoseReplies(1)
		_, err := rw.Read().TryLock(w.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		time.Sleep(time.Second)
		require.Nil(t, reads())

		r := enter(t, rw.Read(), w)
		s.LoseReplies(1)
		require.NoError(t, r.Unlock())
		r = enter(t, rw.Read(), w) // after the release has been resolved
		require.Equal(t, any([]byte("1")), reads())
		require.NoError(t, w.Err())
		unlock(t, w)

		s.LoseReplies(1)
		_, err = rw.Read().Lock(r.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.NoError(t, r.Err())
		unlock(t, r)
		free(t, s, rw)
	})
}

func TestReadReleasedDespiteLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, rw := stallable(t)
		beside := take(t, same(t, s, rw).Read())
		r := take(t, rw.Read(), rlock.WithLease(time.Hour))
		s.LoseReplies(1)
		require.NoError(t, r.Unlock())
		refused(t, rw.Write())
		unlock(t, beside)
		unlock(t, take(t, rw.Write()))
		free(t, s, rw)
	})
}

// The new owner would write concurrently with the reader.
func TestHandOverRejectsWriterDuringDowngrade(t *testing.T) {
	for what, leave := range map[string]func(*rlock.Hold) error{
		"hand over":  func(w *rlock.Hold) error { _, err := w.HandOver(); return err },
		"let expire": (*rlock.Hold).LetExpire,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, tr, rw := stallable(t)
				w := take(t, rw.Write())
				tr.Stall(true)
				read := queued(w.Context(t.Context()), rw.Read())
				time.AfterFunc(100*time.Millisecond, func() { tr.Stall(false) })
				require.ErrorIs(t, leave(w), redlatch.ErrReentered)
				r := must(t, read, soon)
				require.NoError(t, w.Err())
				unlock(t, r, w)
				free(t, s, rw)
			})
		})
	}
}

// The read must be a new acquisition, which waits for the writer.
func TestAbandonedWriterDoesNotAdmitReader(t *testing.T) {
	for what, hasRead := range map[string]bool{"it has read": true, "it has never read": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, tr, rw := stallable(t)
				w := take(t, rw.Write())
				if hasRead {
					unlock(t, enter(t, rw.Read(), w))
				}
				tr.Stall(true)
				left := make(chan error, 1)
				go func() { _, err := w.HandOver(); left <- err }()
				synctest.Wait()
				read := queued(context.WithoutCancel(w.Context(t.Context())), rw.Read(), rlock.WithWait(500*time.Millisecond))
				tr.Stall(false)
				require.NoError(t, <-left)
				require.ErrorIs(t, (<-read).Err, redlatch.ErrNotAcquired)
				require.NoError(t, same(t, s, rw).Write().UnlockAs(t.Context(), w.Owner()))
				free(t, s, rw)
			})
		})
	}
}

// The read is a downgrade or a new acquisition.
func TestReadConcurrentWithWriterUnlockIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		for i := range testlevel.Rounds(60, 600) {
			w := take(t, rw.Write())
			read := later(context.WithoutCancel(w.Context(t.Context())), rw.Read())
			for range i % 20 { // the moment of the crossing varies
				runtime.Gosched()
			}
			unlock(t, w)
			r := must(t, read, soon)
			require.NoError(t, r.Err())
			unlock(t, r)
		}
		free(t, s, rw)
	})
}
