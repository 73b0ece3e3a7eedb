package rfairlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// pair is a master and the server that replaces it in a failover.
type pair struct {
	old, new *redistest.MiniServer
	to       atomic.Pointer[redistest.MiniServer] // the master that clients can reach, if any
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{old: redistest.Mini(t, embedded.WithInProcess()), new: redistest.Mini(t, embedded.WithInProcess())}
	p.to.Store(p.old)
	return p
}

// client returns a client that connects to the master.
func (p *pair) client(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	dial := func(ctx context.Context) (redis.Conn, error) {
		s := p.to.Load()
		if s == nil {
			return nil, errors.New("no master")
		}
		return s.Server.Dial(ctx)
	}
	c, err := redlatch.New(dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// copyLock copies a lock to the new master.
func (p *pair) copyLock(t *testing.T, name string) {
	t.Helper()
	for owner, count := range owners(t, p.old, name) {
		p.new.Do(t, "HSET", name, owner, count)
		p.new.Do(t, "PEXPIRE", name, p.old.Do(t, "PTTL", name))
	}
	for _, owner := range queueOf(t, p.old, name) {
		p.new.Do(t, "RPUSH", codec.QueueKey(name), owner)
	}
	for owner, deadline := range deadlinesOf(t, p.old, name) {
		p.new.Do(t, "ZADD", codec.TimeoutKey(name), deadline, owner)
	}
}

// lose makes the old master unreachable.
func (p *pair) lose() {
	p.to.Store(nil)
	p.old.DropConnections()
	synctest.Wait()
}

// inDoubt calls Lock and loses the reply to its attempt. The client must have run the script before.
func (p *pair) inDoubt(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) *waiter {
	synctest.Wait() // the reply to a comparison of the clocks must not be lost instead
	p.old.LoseReplies(1)
	p.to.Store(nil)
	return await(ctx, l, opts...)
}

// failOver replaces the lost master after some seconds.
func (p *pair) failOver() {
	p.lose()
	time.Sleep(5 * time.Second)
	p.to.Store(p.new)
}

func TestU26CanceledCallerLeavesQueueOfNewMaster(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(p *pair, cancel func()){
		"before the old master is lost": func(p *pair, cancel func()) {
			p.old.LoseReplies(1)
			cancel()
		},
		"while the old master is read-only": func(p *pair, cancel func()) {
			p.old.FailWith("READONLY You can't write against a read only replica.")
			cancel()
			time.Sleep(time.Second)
		},
		"without a master": func(p *pair, cancel func()) {
			p.lose()
			cancel()
			time.Sleep(time.Minute)
		},
	} {
		for place, has := range map[string]bool{"with its queue entry": true, "without": false} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t)
					l := rfairlock.New(p.client(t), "job")
					holdByHand(t, p.old, "job", time.Hour)
					ctx, cancel := context.WithCancel(t.Context())
					w := await(ctx, l)
					synctest.Wait()
					require.Len(t, queueOf(t, p.old, "job"), 1)
					if has {
						p.copyLock(t, "job")
					}
					leave(p, cancel)
					require.ErrorIs(t, w.failed(t, promptly), context.Canceled)
					p.failOver()
					time.Sleep(gone)
					require.Empty(t, queueOf(t, p.new, "job"))
					require.Empty(t, deadlinesOf(t, p.new, "job"))
					time.Sleep(time.Hour)
					require.Empty(t, queueOf(t, p.new, "job"))
				})
			})
		}
	}
}

// The wait is longer than the default.
func TestU26LongWaiterLeavesQueueAfterOutage(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(ctx context.Context, p *pair, l *rlock.Lock) *waiter{
		"queued": func(ctx context.Context, _ *pair, l *rlock.Lock) *waiter {
			return await(ctx, l, rlock.WithWait(time.Hour))
		},
		"in doubt": func(ctx context.Context, p *pair, l *rlock.Lock) *waiter {
			return p.inDoubt(ctx, l, rlock.WithWait(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				l := rfairlock.New(p.client(t), "job")
				require.NoError(t, take(t, l).Unlock())
				holdByHand(t, p.old, "job", 2*time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := lock(ctx, p, l)
				synctest.Wait()
				require.Len(t, queueOf(t, p.old, "job"), 1)
				p.lose()
				time.Sleep(time.Second)
				cancel()
				w.ended(t, time.Minute)
				time.Sleep(20 * time.Minute)
				p.to.Store(p.old)
				time.Sleep(gone)
				require.Empty(t, queueOf(t, p.old, "job"))
			})
		})
	}
}

func TestU26UncertainAttemptLeavesQueueOfNewMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		l := rfairlock.New(p.client(t), "job")
		require.NoError(t, take(t, l).Unlock())
		holdByHand(t, p.old, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := p.inDoubt(ctx, l)
		synctest.Wait()
		require.Len(t, queueOf(t, p.old, "job"), 1)
		p.copyLock(t, "job")
		require.ErrorIs(t, w.failed(t, 10*time.Second), redlatch.ErrUncertain)
		p.failOver()
		time.Sleep(gone)
		require.Empty(t, queueOf(t, p.new, "job"))
		require.Empty(t, deadlinesOf(t, p.new, "job"))
	})
}

// The grant that removed the owner from the queue was not replicated.
func TestHoldLostInFailoverLeavesQueue(t *testing.T) {
	for name, learns := range map[string]func(h *rlock.Hold) error{
		"at a renewal": func(h *rlock.Hold) error {
			<-h.Context(context.Background()).Done()
			return h.Err()
		},
		"at its release": (*rlock.Hold).Unlock,
		"after the last renewal": func(h *rlock.Hold) error {
			time.Sleep(time.Minute)
			return h.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				l := rfairlock.New(p.client(t), "job")
				holdByHand(t, p.old, "job", time.Hour)
				w := await(t.Context(), l)
				synctest.Wait()
				p.copyLock(t, "job")
				freeByHand(t, p.old, "job")
				hold := w.acquired(t, time.Second)
				time.Sleep(time.Second)
				if name == "after the last renewal" {
					p.lose()
					require.ErrorIs(t, learns(hold), redlatch.LossNotRenewed)
					p.failOver()
				} else {
					p.failOver()
					require.ErrorIs(t, learns(hold), redlatch.LossForgotten)
				}
				time.Sleep(gone)
				require.Empty(t, queueOf(t, p.new, "job"))
				require.Empty(t, deadlinesOf(t, p.new, "job"))
				require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, p.new, "job"))
			})
		})
	}
}

// The acknowledged give-up was not replicated: another waiter removes the place, or its deadline does.
func TestQueueEntryRestoredByFailoverExpires(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T) (*pair, *rlock.Lock) {
		t.Helper()
		p := newPair(t)
		holdByHand(t, p.old, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, rfairlock.New(p.client(t), "job"))
		synctest.Wait()
		p.copyLock(t, "job")
		cancel()
		require.ErrorIs(t, w.failed(t, promptly), context.Canceled)
		synctest.Wait()
		require.Empty(t, queueOf(t, p.old, "job"), "acknowledged")
		p.failOver()
		require.Len(t, queueOf(t, p.new, "job"), 1)
		p.new.Do(t, "DEL", "job")
		return p, rfairlock.New(p.client(t), "job")
	}
	t.Run("by another waiter", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, l := lost(t)
			require.NoError(t, await(t.Context(), l).acquired(t, 15*time.Second).Unlock())
		})
	})
	t.Run("by its deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, l := lost(t)
			left := time.Until(time.UnixMilli(deadlinesOf(t, p.new, "job")[queueOf(t, p.new, "job")[0]]))
			require.LessOrEqual(t, left, time.Hour+fairWait)
			_, err := l.TryLock(t.Context())
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			time.Sleep(left)
			require.NoError(t, take(t, l).Unlock())
			require.Empty(t, p.new.Do(t, "KEYS", "*job*"))
		})
	})
}
