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

// pair is a master, and the server that replaces it in a failover. What the new one has is a copy
// that the test makes before.
type pair struct {
	old, new *redistest.MiniServer
	to       atomic.Pointer[redistest.MiniServer] // nil: none can be reached
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

// copyLock gives the new master what the old one has of a lock.
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

// lose ends all connections to the old master, and no other server can be reached.
func (p *pair) lose() {
	p.to.Store(nil)
	p.old.DropConnections()
	synctest.Wait()
}

// failOver makes the new server the master, some seconds after the old one was lost.
func (p *pair) failOver() {
	p.lose()
	time.Sleep(5 * time.Second)
	p.to.Store(p.new)
}

// A caller gives up in a failover, and its leaving was not acknowledged.
func TestU26CallerThatGivesUpInAFailoverLeavesTheQueueOfTheNewMaster(t *testing.T) {
	for name, leave := range map[string]func(p *pair, cancel func()){
		"before the old one is lost": func(p *pair, cancel func()) {
			p.old.LoseReplies(1)
			cancel()
		},
		"while the old one is read-only": func(p *pair, cancel func()) {
			p.old.FailWith("READONLY You can't write against a read only replica.")
			cancel()
			time.Sleep(time.Second)
		},
		"while there is none": func(p *pair, cancel func()) {
			p.lose()
			cancel()
			time.Sleep(time.Minute)
		},
	} {
		for place, has := range map[string]bool{"with its place": true, "without": false} {
			t.Run(name+" "+place, func(t *testing.T) {
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

// A place can stay for as long as its own wait, which may be longer than that of callers that give none.
func TestU26CallerWithALongWaitLeavesTheQueueAfterALongOutage(t *testing.T) {
	for name, lock := range map[string]func(ctx context.Context, p *pair, l *rlock.Lock) *waiter{
		"queued": func(ctx context.Context, _ *pair, l *rlock.Lock) *waiter {
			return await(ctx, l, rlock.WithWait(time.Hour))
		},
		"in doubt": func(ctx context.Context, p *pair, l *rlock.Lock) *waiter {
			p.old.LoseReplies(1)
			p.to.Store(nil)
			return await(ctx, l, rlock.WithWait(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
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
				time.Sleep(50 * time.Minute)
				p.to.Store(p.old)
				time.Sleep(gone)
				require.Empty(t, queueOf(t, p.old, "job"))
			})
		})
	}
}

// The reply to the attempt that has queued the caller is lost with the old master.
func TestU26AttemptInDoubtInAFailoverLeavesNoPlaceOnTheNewMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		l := rfairlock.New(p.client(t), "job")
		require.NoError(t, take(t, l).Unlock())
		holdByHand(t, p.old, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.old.LoseReplies(1)
		p.to.Store(nil)
		w := await(ctx, l)
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

// The new master has the place, and neither the grant that took the owner out of the queue nor
// anything after it.
func TestHoldLostInAFailoverLeavesItsFormerPlace(t *testing.T) {
	for name, learns := range map[string]func(h *rlock.Hold) error{
		"with a renewal": func(h *rlock.Hold) error {
			<-h.Context(context.Background()).Done()
			return h.Err()
		},
		"with its release": (*rlock.Hold).Unlock,
		"too late to be renewed": func(h *rlock.Hold) error {
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
				if name == "too late to be renewed" {
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

// A place that was left on the old master, which acknowledged that, and that the new one has, lasts
// until its deadline, or until another process that waits takes it out.
func TestPlaceWhoseLeavingAFailoverLostIsBounded(t *testing.T) {
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
		synctest.Test(t, func(t *testing.T) {
			_, l := lost(t)
			require.NoError(t, await(t.Context(), l).acquired(t, 15*time.Second).Unlock())
		})
	})
	t.Run("by its deadline", func(t *testing.T) {
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
