package rreadwritelock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Two readers ask at the same time: one leads then, and gives up while a writer of the client
// waits, which came after both. The other is no new reader, and must not sleep on.
func TestAReaderThatHasAskedTakesTheLeadBesideAWriterThatWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	far := newLock(t, s)
	rw := rreadwritelock.New(connect(t, p.URL(), redlatch.WithPollCap(time.Minute)), far.Name())
	unlock(t, take(t, rw.Read()))
	w := take(t, far.Write())
	reads := enter(t, far.Read(), w)
	count := func(n int64) func() bool { return func() bool { return rw.Read().Internal().Engine.Waiting() == n } }
	p.Latency(redistest.ToClient, 100*time.Millisecond)
	first, giveUp := context.WithCancel(within(t))
	leader := later(first, rw.Read())
	time.Sleep(20 * time.Millisecond)
	other := later(within(t), rw.Read())
	require.Eventually(t, count(2), soon, time.Millisecond)
	p.Latency(redistest.ToClient, 0)
	waiting(t, s, rw, 1)
	writer := later(within(t), rw.Write())
	require.Eventually(t, count(3), soon, time.Millisecond)
	time.Sleep(400 * time.Millisecond) // the burst is over, the patience is not
	giveUp()
	require.ErrorIs(t, (<-leader).Err, redlatch.ErrNotAcquired)
	unlock(t, w) // the lock is left to a reader
	began := time.Now()
	came := must(t, other, 10*time.Second)
	t.Log(time.Since(began))
	unlock(t, came, reads)
	unlock(t, must(t, writer, soon))
	free(t, s, rw)
}
