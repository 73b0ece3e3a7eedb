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
	"github.com/redlatch/redlatch/rreadwritelock"
)

// behind returns a lock behind a proxy. The server knows its scripts.
func behind(t *testing.T) (*redistest.Server, *redistest.Proxy, *rreadwritelock.Lock) {
	t.Helper()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	rw := rreadwritelock.New(connect(t, "redis://"+p.Addr(), redlatch.WithCommandTimeout(10*time.Second)), redistest.Key(t))
	w := take(t, rw.Write())
	r := enter(t, rw.Read(), w)
	unlock(t, enter(t, rw.Read(), r), r, w)
	unlock(t, take(t, rw.Read()))
	return s, p, rw
}

func TestAReadWhoseReplyIsLostLeavesNothing(t *testing.T) {
	t.Parallel()
	s, p, rw := behind(t)
	p.CutReplyAfter(0)
	_, err := rw.Read().TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	free(t, s, rw)
	unlock(t, take(t, rw.Write()))
}

// The writer's own hold does not change.
func TestTheReadsOfAWriterComeRightAfterALostReply(t *testing.T) {
	t.Parallel()
	s, p, rw := behind(t)
	w := take(t, rw.Write())
	reads := func() any { return s.Do(t, "HGET", rw.Name(), w.Owner().String()) }

	p.CutReplyAfter(0)
	_, err := rw.Read().TryLock(w.Context(within(t)))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	require.Eventually(t, func() bool { return reads() == nil }, soon, 5*time.Millisecond)

	r := enter(t, rw.Read(), w)
	p.CutReplyAfter(0)
	require.NoError(t, r.Unlock())
	r = enter(t, rw.Read(), w) // after the release was resolved
	require.Equal(t, any([]byte("1")), reads())
	require.NoError(t, w.Err())
	unlock(t, w)

	p.CutReplyAfter(0)
	inner, err := rw.Read().Lock(r.Context(within(t)))
	if err == nil {
		unlock(t, inner)
	} else {
		require.ErrorIs(t, err, redlatch.ErrUncertain)
	}
	require.NoError(t, r.Err())
	unlock(t, r)
	free(t, s, rw)
}

func TestAReadThatIsReleasedWithoutAReplyIsGone(t *testing.T) {
	t.Parallel()
	s, p, rw := behind(t)
	beside := take(t, same(t, s, rw).Read())
	r := take(t, rw.Read(), rlock.WithLease(10*time.Second))
	p.CutReplyAfter(0)
	require.NoError(t, r.Unlock())
	refused(t, rw.Write())
	unlock(t, beside)
	unlock(t, take(t, rw.Write()))
	free(t, s, rw)
}

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
