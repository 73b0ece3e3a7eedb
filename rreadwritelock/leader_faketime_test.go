package rreadwritelock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Of the readers of a process that wait one listens. When it gives up another one does, at once
// and not with its next look.
func TestAReaderThatListensForOthersHasASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client := func() *redlatch.Client {
			c, err := redlatch.New(srv.Server.Dial)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			return c
		}
		far, near := rreadwritelock.New(client(), "job"), rreadwritelock.New(client(), "job")
		w := take(t, far.Write())
		ctx, cancel := context.WithCancel(t.Context())
		first := later(ctx, near.Read())
		synctest.Wait()
		second := later(t.Context(), near.Read())
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-first).Err, context.Canceled)
		synctest.Wait()
		unlocked := time.Now()
		unlock(t, w)
		came := <-second
		require.NoError(t, came.Err)
		require.Zero(t, time.Since(unlocked))
		unlock(t, came.Hold)
	})
}

// While others listen, the lock is free for a moment at least every 20 ms, so that they can take it.
func TestWritersOfOneProcessLeaveTheLockToOthersAfterSomeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		require.NoError(t, redis.PubSubConn{Conn: srv.Dial(t)}.Subscribe("redisson_rwlock:{job}"))

		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				l := rreadwritelock.New(client, "job").Write()
				for ctx.Err() == nil {
					if h, err := l.Lock(ctx); err == nil {
						time.Sleep(time.Millisecond)
						assert.NoError(t, h.Unlock())
					}
				}
			})
		}
		held, longest, free := 0, 0, 0
		for range testlevel.Rounds(150, 1000) {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if held++; srv.Do(t, "EXISTS", "job") == int64(0) {
				free++
				held = 0
			}
			longest = max(longest, held)
		}
		cancel()
		all.Wait()
		require.LessOrEqual(t, longest, 25, "ms")
		require.Positive(t, free)
	})
}

// The forgotten hold has the writers' turn until it learns of the loss.
func TestReadersAndWritersComeInBesideAHoldThatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		l := rreadwritelock.New(client, "job")
		former := take(t, l.Write(), rlock.WithLease(time.Hour))
		srv.Do(t, "DEL", "job")
		for range 2 {
			for _, role := range []*rlock.Lock{l.Read(), l.Write()} {
				hold, err := role.TryLock(t.Context())
				require.NoError(t, err)
				require.NoError(t, hold.Unlock())
			}
		}
		require.ErrorIs(t, former.Unlock(), redlatch.ErrLost)
	})
}
