package rreadwritelock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// A writer reaches its maximum while a read within it is on its way: when the writer's lease is
// over the lock is a reader's, as when the read had been there before.
func TestAWriterAtItsMaximumLeavesTheLockToAReadOnItsWay(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for what, latency := range map[string]time.Duration{"before": 0, "on its way": 400 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := redistest.NewProxy(t, s.Addr())
			far := newLock(t, s)
			rw := rreadwritelock.New(connect(t, p.URL(), redlatch.WithWatchdogTimeout(2*time.Second)), far.Name())
			unlock(t, take(t, rw.Read()))
			w := take(t, rw.Write(), rlock.WithMaxHold(600*time.Millisecond))
			unlock(t, enter(t, rw.Read(), w))
			time.Sleep(300 * time.Millisecond)
			p.Latency(redistest.ToClient, latency)
			r, err := rw.Read().Lock(context.WithoutCancel(w.Context(t.Context())))
			require.NoError(t, err)
			p.Latency(redistest.ToClient, 0)
			time.Sleep(400 * time.Millisecond)
			require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
			require.Eventually(t, func() bool {
				h, err := far.Read().TryLock(within(t))
				if err == nil {
					unlock(t, h)
				}
				return err == nil
			}, 8*time.Second, 50*time.Millisecond)
			require.NoError(t, r.Err())
			unlock(t, r)
		})
	}
}
