package rfairlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// ending is how a hold ends whose owner might be reused.
type ending struct {
	opts []rlock.Option
	end  func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold)
}

func unlockIt(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock())
}

// after calls do and then unlocks.
func after(do func(t *testing.T, l *rlock.Lock, h *rlock.Hold), opts ...rlock.Option) ending {
	return ending{opts, func(t *testing.T, _ *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
		t.Helper()
		do(t, l, h)
		require.NoError(t, h.Unlock())
	}}
}

func sleeps(d time.Duration) func(*testing.T, *rlock.Lock, *rlock.Hold) {
	return func(*testing.T, *rlock.Lock, *rlock.Hold) { time.Sleep(d) }
}

// A late call for an owner, or a caller that knows it, would affect its next hold.
func TestOwnerReusedOnlyWhenSettled(t *testing.T) {
	t.Parallel()
	for again, endings := range map[bool]map[string]ending{
		true: {
			"at once":            {end: unlockIt},
			"with another wait":  {opts: []rlock.Option{rlock.WithWait(time.Minute)}, end: unlockIt},
			"with a fixed lease": {opts: []rlock.Option{rlock.WithLease(10 * time.Second)}, end: unlockIt},
			"after a moment":     after(sleeps(900 * time.Millisecond)),
			"with a context": after(func(t *testing.T, _ *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				require.NoError(t, h.Context(t.Context()).Err())
			}),
		},
		false: {
			"after a renewal": after(sleeps(600*time.Millisecond), rlock.WithWatchdog(1500*time.Millisecond)),
			"after a re-entry": after(func(t *testing.T, l *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				inner, err := l.Lock(h.Context(t.Context()))
				require.NoError(t, err)
				require.NoError(t, inner.Unlock())
			}),
			"after a long hold": after(sleeps(2 * time.Second)),
			"after a long pause": {end: func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				require.NoError(t, h.Unlock())
				time.Sleep(2 * time.Second)
			}},
			"after a loss": {end: func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				srv.Do(t, "DEL", l.Name())
				require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
			}},
			"after its maximum": {[]rlock.Option{rlock.WithMaxHold(500 * time.Millisecond)}, func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				time.Sleep(600 * time.Millisecond)
				require.ErrorIs(t, h.Unlock(), redlatch.ErrMaxHold)
			}},
			"after LetExpire": {end: func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				require.NoError(t, h.LetExpire())
			}},
			"after HandOver": {end: func(t *testing.T, _ *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
				t.Helper()
				owner, err := h.HandOver()
				require.NoError(t, err)
				require.NoError(t, l.UnlockAs(t.Context(), owner))
			}},
			"with a given owner": {[]rlock.Option{rlock.WithOwner(codec.NewOwner([16]byte{1}, 7))}, unlockIt},
		},
	} {
		for name, e := range endings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv, client, _ := inBubble(t)
					l := rfairlock.New(client, "job")
					h, owner := waitedFor(t, srv, l, e.opts...)
					e.end(t, srv, l, h)
					require.Equal(t, again, len(channelsOf(t, srv)) > 0, "its channel has a subscriber")
					h, next := waitedFor(t, srv, l)
					require.Equal(t, again, owner == next)
					require.NoError(t, h.Unlock())
				})
			})
		}
	}
}

func TestOwnerWithUnansweredCallIsNotReused(t *testing.T) {
	for name, script := range map[string]*transport.Script{"attempt": luasrc.FairAcquire, "release": luasrc.FairRelease} {
		for _, unsent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unsent ", unsent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, client, calls := inBubble(t)
					l := rfairlock.New(client, "job")
					holdByHand(t, srv, "job", time.Hour)
					w := await(t.Context(), l)
					synctest.Wait()
					owner := queueOf(t, srv, "job")[0]
					replaced := false
					calls.onNext(script, func(call *transport.Call, done transport.Done) {
						replaced = true
						if unsent {
							done(nil, fmt.Errorf("%w: cut", redlatch.ErrNotSent))
						} else {
							calls.Redigo.Start(call, func(any, error) { done(nil, fmt.Errorf("%w: cut", redlatch.ErrUncertain)) })
						}
					})
					freeByHand(t, srv, "job")
					require.NoError(t, w.acquired(t, 5*time.Second).Unlock())
					require.Empty(t, channelsOf(t, srv))
					require.True(t, replaced)
					time.Sleep(100 * time.Millisecond)
					_, again := waitedFor(t, srv, l)
					require.NotEqual(t, owner, again)
				})
			})
		}
	}
}

// A place with a subscriber but no waiter would block the queue.
func TestCanceledWaiterUnsubscribes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		require.NoError(t, h.Unlock())
		holdByHand(t, srv, "job", time.Hour)
		for i := range 3 { // the first reuses the owner; the others subscribe first
			ctx, cancel := context.WithCancel(t.Context())
			w := await(ctx, l)
			channels, queue := channelsOf(t, srv), queueOf(t, srv, "job")
			require.Equal(t, i == 0, queue[0] == owner)
			require.Equal(t, []string{protocol.OwnerChannel("job", queue[0])}, channels)
			cancel()
			require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
			require.Empty(t, channelsOf(t, srv))
			require.Empty(t, queueOf(t, srv, "job"))
		}
	})
}

func TestMessageForPreviousWaitCausesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		tell := func() { srv.Do(t, "PUBLISH", protocol.OwnerChannel("job", owner), protocol.MessageUnlock) }
		tell() // while it holds the lock
		require.NoError(t, h.Unlock())
		tell()
		synctest.Wait()
		holdByHand(t, srv, "job", time.Hour)
		before := calls.n.Load()
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, l)
		synctest.Wait()
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		require.Equal(t, before+1, calls.n.Load(), "earlier messages do not count")
		deadline := deadlinesOf(t, srv, "job")
		time.Sleep(time.Second)
		tell() // late
		synctest.Wait()
		require.Equal(t, before+2, calls.n.Load())
		require.Equal(t, deadline, deadlinesOf(t, srv, "job"), "it keeps its place")
		w.stillWaits(t)
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}

// An observer sees the holds of one owner in order.
func TestOwnerNotReusedBeforeReleaseReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		srv, client, _ := inBubble(t, redlatch.WithObserver(redlatch.Observer{
			Released: func(context.Context, redlatch.Released) { <-goOn },
		}))
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		unlocked := make(chan error, 1)
		go func() { unlocked <- h.Unlock() }()
		synctest.Wait()
		require.False(t, locked(t, srv, "job"))
		next, other := waitedFor(t, srv, l)
		require.NotEqual(t, owner, other)
		close(goOn)
		require.NoError(t, <-unlocked)
		require.NoError(t, next.Unlock())
	})
}

func TestProofOfPreviousHoldIsInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		former, owner := waitedFor(t, srv, l)
		proof := former.Context(t.Context())
		require.NoError(t, former.Unlock())
		next, again := waitedFor(t, srv, l)
		require.Equal(t, owner, again)
		_, err := l.TryLock(context.WithoutCancel(proof))
		checkHeld(t, err)
		require.NoError(t, former.Unlock())
		require.ErrorIs(t, former.LetExpire(), redlatch.ErrNotHeld)
		_, err = former.HandOver()
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.ErrorIs(t, former.Err(), redlatch.ErrNotHeld)
		require.NoError(t, next.Err())
		require.Equal(t, map[string]string{owner: "1"}, owners(t, srv, "job"))
		require.NoError(t, next.Unlock())
	})
}

// Another process has seen the owner with the deadline from its former wait.
func TestEvictOfPreviousEntryKeepsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		w := await(t.Context(), l)
		synctest.Wait()
		owner, seen := queueOf(t, srv, "job")[0], deadlinesOf(t, srv, "job")
		freeByHand(t, srv, "job")
		require.NoError(t, w.acquired(t, time.Second).Unlock())
		time.Sleep(10 * time.Millisecond)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w = await(ctx, l)
		synctest.Wait()
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		srv.Do(t, "EVAL", luasrc.FairEvict.Text(), 4, "job", codec.QueueKey("job"), codec.TimeoutKey("job"), codec.LockChannel("job"),
			time.Now().UnixMilli(), 15_000, "PUBLISH", protocol.MessageUnlock, owner, seen[owner])
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}

func TestContendedLockQueuesCallersThatCannotSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		calls.subscribe = neverSubscribes(func() {})
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		_, end := waitTogether(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, l)
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		cancel()
		checkHeld(t, w.failed(t, time.Second))

		// With a short wait the attempt is immediate.
		w = await(t.Context(), l, rlock.WithWait(100*time.Millisecond))
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		checkHeld(t, w.failed(t, time.Second))

		// A caller that leaves before it is queued leaves no entry.
		ctx, cancel = context.WithCancel(t.Context())
		w = await(ctx, l)
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 1)
		cancel()
		checkHeld(t, w.failed(t, time.Second))
		end()
	})
}
