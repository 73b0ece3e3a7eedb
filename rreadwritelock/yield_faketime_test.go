package rreadwritelock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// While other clients have subscribed, the lock is often free for long enough that they can acquire it.
func TestCallersFreeLockForOtherProcesses(t *testing.T) {
	roles := map[string][]func(*rreadwritelock.Lock) *rlock.Lock{
		"writers":             {(*rreadwritelock.Lock).Write},
		"readers and writers": {(*rreadwritelock.Lock).Read, (*rreadwritelock.Lock).Write},
	}
	for name, of := range roles {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := inMemory(t)
				rw := rreadwritelock.New(clientOf(t, s), "job")
				require.NoError(t, redis.PubSubConn{Conn: s.Dial(t)}.Subscribe("redisson_rwlock:{job}"))
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var acquired atomic.Int64
				for n := range 8 {
					l := of[n%len(of)](rw)
					all.Go(func() {
						for ctx.Err() == nil {
							if h, err := l.Lock(ctx); err == nil {
								acquired.Add(1)
								time.Sleep(time.Millisecond)
								assert.NoError(t, h.Unlock())
							}
						}
					})
				}
				sinceFree, longest, free := 0, 0, 0
				rounds := testlevel.Rounds(100, 1000)
				for range rounds {
					time.Sleep(time.Millisecond)
					synctest.Wait()
					if free++; s.Do(t, "EXISTS", "job") != int64(0) {
						free = 0
					}
					if sinceFree++; free >= 8 {
						sinceFree = 0
					}
					longest = max(longest, sinceFree)
				}
				cancel()
				all.Wait()
				require.LessOrEqual(t, longest, 40, "ms until it was free for 8 ms")
				require.Greater(t, acquired.Load(), int64(rounds/4))
			})
		})
	}
}

func TestWritersOfOneProcessDoNotPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, rw := inMemory(t)
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 16 {
					h, err := rw.Write().Lock(t.Context())
					if assert.NoError(t, err) {
						time.Sleep(time.Millisecond)
						assert.NoError(t, h.Unlock())
					}
				}
			})
		}
		all.Wait()
		require.Equal(t, 8*16*time.Millisecond, time.Since(began))
	})
}

// The first attempt of a call with a short limit must not be late because of other processes.
func TestReaderWithShortLimitDoesNotPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rw, next := contended(t)
		began := time.Now()
		r := take(t, rw.Read(), rlock.WithWait(5*time.Millisecond))
		require.Zero(t, time.Since(began))
		unlock(t, r)
		unlock(t, must(t, next, soon))
		require.Equal(t, 20*time.Millisecond, time.Since(began))
	})
}

// The last reader in its process could wake it before the message wakes the others.
func TestWriterIsWokenTogetherWithOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var by atomic.Value
		rw, next := contended(t, redlatch.WithObserver(redlatch.Observer{Woken: func(_ context.Context, e redlatch.Woken) {
			by.Store(e.By)
		}}))
		r := take(t, rw.Read(), rlock.WithWait(5*time.Millisecond))
		time.Sleep(time.Second) // the next writer is refused
		unlock(t, r)
		unlock(t, must(t, next, soon))
		require.Equal(t, "message", by.Load())
	})
}

// contended returns a lock whose next writer has just begun to pause, because another client has subscribed.
func contended(t *testing.T, opts ...redlatch.Option) (*rreadwritelock.Lock, <-chan acquired) {
	t.Helper()
	s, rw := inMemory(t, opts...)
	unlock(t, take(t, rw.Read())) // loads the script, so that attempts can't overtake later releases
	require.NoError(t, redis.PubSubConn{Conn: s.Dial(t)}.Subscribe("redisson_rwlock:{"+rw.Name()+"}"))
	first := take(t, rw.Write())
	second, third := queued(t.Context(), rw.Write()), queued(t.Context(), rw.Write())
	unlock(t, first)
	w := must(t, second, soon)
	time.Sleep(time.Second)
	unlock(t, w)
	synctest.Wait()
	return rw, third
}
