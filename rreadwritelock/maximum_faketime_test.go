package rreadwritelock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// A writer at its maximum leaves its role when its lease ends, while its reads keep the lock.
func TestWriterAtMaxHoldKeepsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		w := take(t, rw.Write(), rlock.WithWatchdog(3*time.Second), rlock.WithMaxHold(time.Second))
		r := enter(t, rw.Read(), w)
		beside := must(t, later(within(t), same(t, s, rw).Read()), 5*time.Second)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		require.NoError(t, r.Err())
		refused(t, same(t, s, rw).Write())
		require.ErrorIs(t, w.Unlock(), redlatch.ErrMaxHold)
		unlock(t, beside, r)
		free(t, s, rw)
	})
}

// The writer reaches its maximum while it enters as a reader.
func TestWriterAtMaxHoldKeepsPendingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		tr := &faketransport.Distant{}
		t.Cleanup(tr.Wait)
		rw := rreadwritelock.New(callers.Over(t, s, func(near transport.Transport) transport.Transport {
			tr.Transport = near
			return tr
		}), "job")
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		ctx := context.WithoutCancel(w.Context(t.Context()))
		time.Sleep(920 * time.Millisecond)
		r, err := rw.Read().Lock(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		time.Sleep(2 * time.Minute) // the writer's lease ends, the reader's is renewed
		require.NoError(t, r.Err())
		unlock(t, take(t, same(t, s, rw).Read()), r)
	})
}

// The read that the writer has ended had a longer lease, which the lock still has.
func TestWriterAtMaxHoldLeavesWithItsOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		unlock(t, enter(t, rw.Read(), w, rlock.WithLease(time.Hour)))
		time.Sleep(time.Minute)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		beside, err := same(t, s, rw).Read().TryLock(t.Context())
		require.NoError(t, err, "the writer's lease has expired")
		unlock(t, beside)
	})
}

// The client closes between the writer's maximum and the end of its lease.
func TestClosedClientLogsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		var said bytes.Buffer
		client := clientOf(t, s, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		unlock(t, enter(t, rw.Read(), w))
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		require.NoError(t, client.Close())
		said.Reset()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, said.String())
	})
}
